"""The phases of a run: preparation, tuning, serving, loading, recording, restoring, and what they share."""
