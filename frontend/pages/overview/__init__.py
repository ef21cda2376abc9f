"""Overview: what runs, pinned trends, hosts, first steps."""
