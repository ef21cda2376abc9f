"""Searches for the sustainable rate."""
