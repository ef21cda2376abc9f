"""Schedules: the list, one, its form."""
