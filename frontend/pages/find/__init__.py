"""Find: everything with a name."""
