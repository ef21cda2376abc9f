"""Edits of an XML configuration file."""
