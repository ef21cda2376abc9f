"""vegeta."""
