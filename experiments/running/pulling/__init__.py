"""Sites whose workers fetch their runs over HTTPS: what they are given, and what they say of it."""
