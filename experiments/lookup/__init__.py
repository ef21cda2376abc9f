"""The one search box: everything of a team that has a name."""
