"""nginx."""
