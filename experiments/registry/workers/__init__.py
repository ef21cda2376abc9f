"""Workers: which there are, what is handed to them, what they have done."""
