"""What was seen of a run, and whether its figures count."""
