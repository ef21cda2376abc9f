"""Measurements of BenchHub itself; run them as modules from the project's directory (see README.md)."""
