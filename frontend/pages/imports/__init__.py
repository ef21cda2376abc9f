"""Imports: a report becomes a run, a recording stands beside one."""
