"""What people write to runs, experiments and charts: notes, labels, tags."""
