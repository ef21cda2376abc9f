"""Measurements of BenchHub itself; run them as modules from the project's directory (see README.md)."""

import benchhub  # noqa: F401 - before numpy: linear algebra in one thread, as in BenchHub's own processes
