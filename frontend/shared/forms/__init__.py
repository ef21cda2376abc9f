"""What people type, turned into what the use cases take; every error names its field."""
