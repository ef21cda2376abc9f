"""Hosts: keys, checks, hardware profiles, reservations, quarantine."""
