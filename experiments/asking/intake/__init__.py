"""Results that come from elsewhere."""
