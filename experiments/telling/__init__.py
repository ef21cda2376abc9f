"""What people see and are told."""
