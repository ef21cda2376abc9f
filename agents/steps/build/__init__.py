"""Building a commit on the host."""
