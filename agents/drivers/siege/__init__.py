"""siege."""
