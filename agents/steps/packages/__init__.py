"""Packages that a run needs."""
