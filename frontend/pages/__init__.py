"""One folder per page: its view, forms, presenter and templates."""
