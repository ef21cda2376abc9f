"""What everything else stands on: errors, commands, redaction, the protocol of a session, and small types."""
