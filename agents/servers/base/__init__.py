"""What servers under test have in common: the class of a server, texts in one output, what a process really has."""
