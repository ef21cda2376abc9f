"""Runs and experiments that people launch."""
