"""Hardware: two hosts side by side."""
