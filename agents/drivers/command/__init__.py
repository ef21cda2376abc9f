"""Any benchmark with its own output."""
