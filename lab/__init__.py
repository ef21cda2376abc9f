"""Hosts to play and to test with, on one Linux machine: namespaces of its kernel, a real sshd in each."""
