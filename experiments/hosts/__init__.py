"""Hosts: adding and reaching them, their keys and hardware, reservations, quarantine and the way back."""
