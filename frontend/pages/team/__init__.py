"""A team: its name, members, invitations, services and tokens."""
