"""Gatling: virtual users of a web site, written in Java."""
