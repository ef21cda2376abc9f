"""A worker's way through one run."""
