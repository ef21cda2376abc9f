"""A whole team as one file: exported, and imported into the same or another installation."""
