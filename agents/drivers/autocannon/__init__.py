"""autocannon."""
