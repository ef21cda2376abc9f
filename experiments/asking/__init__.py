"""How work begins."""
