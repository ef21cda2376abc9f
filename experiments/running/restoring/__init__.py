"""Putting a dirty host back."""
