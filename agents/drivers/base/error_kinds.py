"""What kind of failure an error message of an HTTP client means."""

from __future__ import annotations

from collections.abc import Mapping

from agents.results.report import LoadErrors

_CONNECT = (
    "dial tcp",
    "connection refused",
    "no such host",
    "tls handshake",
    "failed to connect",
    "dns",
    "certificate",
)
_TIMEOUT = ("timeout", "timed out", "deadline exceeded")
_WRITE = ("write:", "broken pipe")
_READ = ("eof", "reset by peer", "read:", "server closed", "connection closed", "incomplete message", "closed before")


def kind_of(message: str) -> str:
    """connect, timeout, write, read or other."""
    text = message.lower()
    for kind, words in (("connect", _CONNECT), ("timeout", _TIMEOUT), ("write", _WRITE), ("read", _READ)):
        if any(word in text for word in words):
            return kind
    return "other"


def counted(messages: Mapping[str, int], status: int) -> LoadErrors:
    """The errors of an HTTP client by kind, and the responses with a bad status."""
    kinds = dict.fromkeys(("connect", "read", "write", "timeout", "other"), 0)
    for message, count in messages.items():
        kinds[kind_of(message)] += count
    return LoadErrors(**kinds, status=status)


def bad_statuses(codes: Mapping[str, int]) -> int:
    """Responses that are neither 2xx nor 3xx; 0 is no response."""
    return sum(count for code, count in codes.items() if code != "0" and not "200" <= code < "400")
