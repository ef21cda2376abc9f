"""New run: the form and what is known before the launch."""
