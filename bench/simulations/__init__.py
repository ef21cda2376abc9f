"""Simulates what the documents promise of BenchHub's statistics: a module per subject, figures beside their aims."""
