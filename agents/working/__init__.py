"""A worker's way through one run, wherever its record is kept."""
