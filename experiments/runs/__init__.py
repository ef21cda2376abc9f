"""Parts of a run: what it is launched from, its numbers, labels, recordings, artifacts and copies."""
