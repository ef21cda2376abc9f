"""Baselines: the list, pinning, unpinning."""
