"""Settings, Thresholds: the team's limits."""
