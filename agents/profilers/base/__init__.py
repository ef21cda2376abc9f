"""What every profiler shares."""
