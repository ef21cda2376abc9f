"""Wiring of BenchHub: settings, URLs, Celery, and the PostgreSQL and Redis of the one-machine start."""
