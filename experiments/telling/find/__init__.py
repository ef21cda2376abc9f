"""The search box, and the documentation's own search."""
