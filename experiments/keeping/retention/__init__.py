"""Deletion: the trash, what it removes for good, and how long a team keeps its runs."""
