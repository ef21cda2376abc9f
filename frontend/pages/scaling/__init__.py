"""The scaling of an experiment."""
