"""Settings, Audit: who changed what."""
