"""Telling others: webhooks and mails about what happened, delivered at least once."""
