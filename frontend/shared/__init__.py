"""What every page may use: who may see it, words, units, badges, forms that several pages have; it knows no page."""
