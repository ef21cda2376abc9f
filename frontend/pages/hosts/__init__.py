"""Hosts: the list, one with its history, what is done to it, reservations."""
