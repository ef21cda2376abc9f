"""The trash: deleting and restoring."""
