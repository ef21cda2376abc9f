"""What servers that may stand before others have alike: where they listen in a text of one's own, and who is behind."""

from __future__ import annotations

from typing import Annotated

from pydantic import StringConstraints

WHERE_IT_LISTENS = "{address}:{port}"
"""What stands in a configuration of one's own in place of the address and the port of the run."""

_HOST = r"[A-Za-z0-9.-]{1,253}|\[[0-9a-fA-F:.]{2,45}\]|\$\{[a-z][a-z0-9_]{0,11}\.address\}"
_PORT = r"[0-9]{1,5}|\$\{[a-z][a-z0-9_]{0,11}\.port\}"
Backend = Annotated[str, StringConstraints(pattern=rf"^(?:{_HOST}):(?:{_PORT})$")]
"""HOST:PORT, an IPv6 address in brackets; `${app.address}:${app.port}` for a member of the system."""

SELF_SIGNED = """
self_signed() {
  mkdir tls
  openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=BenchHub -keyout tls/key.pem -out tls/certificate.pem \\
    >/dev/null 2>&1 || { echo "openssl could not make a key and a certificate" >&2; exit 1; }
}
"""
"""POSIX sh: `self_signed` makes tls/key.pem and tls/certificate.pem for the run."""


def listens_at(address: str, port: int, everywhere: str) -> str:
    """ADDRESS:PORT as both programs have it; `everywhere` is the word for every address."""
    host = f"[{address}]" if ":" in address else address
    return f"{host or everywhere}:{port}"
