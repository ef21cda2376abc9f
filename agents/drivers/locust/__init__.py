"""Locust: users of a web site, written in Python."""
