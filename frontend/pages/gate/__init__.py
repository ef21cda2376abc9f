"""The gate of an experiment: what a pipeline would be told."""
