"""Requests to addresses that users type: what may be reached, and one request under bounds."""
