"""Rate searches: the list, a new one, and one with its answer."""
