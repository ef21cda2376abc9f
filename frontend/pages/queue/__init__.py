"""The queue: what runs, what waits, for what and until when."""
