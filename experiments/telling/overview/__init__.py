"""What the first page of a team shows: pinned trends and the first steps."""
