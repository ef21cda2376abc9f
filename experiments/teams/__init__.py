"""Teams: who may do what, tokens, and the audit trail."""
