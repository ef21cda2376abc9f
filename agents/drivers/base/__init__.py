"""What load tools have in common: the class of a driver, HTTP options, command lines, when figures mean nothing."""
