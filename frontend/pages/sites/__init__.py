"""The sites of the installation, for its staff."""
