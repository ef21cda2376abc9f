"""Open Liberty."""
