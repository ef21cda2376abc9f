"""Notes, tags and the archive of runs and experiments."""
