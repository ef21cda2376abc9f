"""The log of a run, line by line."""
