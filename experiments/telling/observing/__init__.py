"""What dashboards and tracing tools of others are given: happenings as annotations."""
