"""What all operations of the API share: sign-in, bodies, problems, limits, the description."""
