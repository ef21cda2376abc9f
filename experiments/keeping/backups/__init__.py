"""The whole installation in one file, and back: the database as one moment has it, without the keys."""
