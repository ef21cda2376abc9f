"""Sharing: the links as the team sees them, and the page of somebody who was only sent one."""
