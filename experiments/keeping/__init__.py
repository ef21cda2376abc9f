"""What operators need."""
