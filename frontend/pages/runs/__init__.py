"""Runs: the list, its views, what is done to several at once."""
