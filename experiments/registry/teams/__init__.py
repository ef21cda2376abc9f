"""Teams: members, rights, tokens, quotas, the audit trail."""
