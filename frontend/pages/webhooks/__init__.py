"""Webhooks: the list, one with its deliveries."""
