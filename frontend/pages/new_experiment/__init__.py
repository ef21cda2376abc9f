"""New experiment: the form and what is known before the launch."""
