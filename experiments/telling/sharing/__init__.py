"""Sharing: something of a team, frozen, for people outside it."""
