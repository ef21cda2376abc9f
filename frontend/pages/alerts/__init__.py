"""Alerts: the list, and one with what it rests on and what was decided."""
