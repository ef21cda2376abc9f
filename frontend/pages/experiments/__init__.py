"""Experiments: the list, and one with its question, matrix and answer."""
