"""One run: what it found, how it went, what it changed and put back."""
