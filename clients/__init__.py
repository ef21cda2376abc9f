"""Clients of BenchHub's REST API: they import nothing of BenchHub itself."""
