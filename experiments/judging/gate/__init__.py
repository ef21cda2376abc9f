"""Whether a pipeline may go on."""
