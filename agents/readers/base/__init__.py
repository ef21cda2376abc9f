"""What the readers of result files share: a result and its figures, JSON, CSV, numbers."""
