"""Trends: metrics over time."""
