"""Notes on charts: written on a run or a series, changed, deleted."""
