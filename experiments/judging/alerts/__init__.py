"""Change points of trends, and what people make of them."""
