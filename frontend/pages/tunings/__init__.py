"""Tuning searches: the list, a new one, and one with its trials, its answer and what is left."""
