"""Tuning searches: the best configuration of a recipe within bounds, confirmed by fresh runs."""
