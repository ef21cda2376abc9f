"""What a run said while it went on: events, log files, the live feed."""
