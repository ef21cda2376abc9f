"""Django's PostgreSQL backend, which starts the embedded server before the first connection."""
