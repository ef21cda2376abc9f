"""Whether variants differ."""
