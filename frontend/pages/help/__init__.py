"""Help: the documentation inside the product."""
