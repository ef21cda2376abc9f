"""Reports of an experiment and of a run."""
