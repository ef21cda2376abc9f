"""The nouns of the record: their vocabulary, reads and small writes. No use cases."""
