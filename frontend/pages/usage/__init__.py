"""Settings, Usage: quotas and retention."""
