"""The end of a run: all that is stored of it, in one transaction."""
