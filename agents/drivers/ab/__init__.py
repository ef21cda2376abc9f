"""ab (ApacheBench)."""
