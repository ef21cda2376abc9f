"""Runs beside each other: history, scaling, machines."""
