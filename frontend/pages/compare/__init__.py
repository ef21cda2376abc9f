"""Compare: runs side by side."""
