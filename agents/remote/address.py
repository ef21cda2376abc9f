"""Where a host answers, and the keys by which it and BenchHub prove who they are."""

from __future__ import annotations

import base64
import binascii
import hashlib
import ipaddress
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

_KINDS = {"ed25519": "ED25519", "ecdsa": "ECDSA", "rsa": "RSA"}
_FILE = "/etc/ssh/ssh_host_{}_key.pub"


@dataclass(frozen=True)
class Address:
    """Where a host answers and who it must prove to be: `host_key` is one pinned line "ssh-ed25519 AAAA...".

    `jump` is the host to go through; it is logged in to with the same private key.
    """

    name: str
    address: str
    port: int
    user: str
    host_key: str
    jump: Address | None = None

    def __str__(self) -> str:
        return f"{self.name} ({self.address}:{self.port})"


@dataclass(frozen=True)
class HostKey:
    """A host's public key: `line` to pin, all else for a person to compare."""

    line: str

    @property
    def fingerprint(self) -> str:
        """`SHA256:...`, as ssh-keygen -l prints it. ValueError when the line is no public key."""
        return fingerprint(self.line)

    @property
    def kind(self) -> str:
        """ED25519, ECDSA or RSA: what ssh-keygen -l says behind the fingerprint; another key type's own name."""
        name = self.line.partition(" ")[0]
        return _KINDS.get(name.removeprefix("ssh-").partition("-")[0], name)

    @property
    def file(self) -> str:
        """Where sshd keeps the public half unless its sshd_config names another; "" for other types of keys."""
        return _FILE.format(self.kind.lower()) if self.kind in _KINDS.values() else ""

    def __str__(self) -> str:
        return f"{self.fingerprint} ({self.kind})"


def fingerprint(line: str) -> str:
    """`SHA256:...` of a public key line, as ssh-keygen -l prints it. ValueError when it is not one."""
    try:
        blob = base64.b64decode(line.split()[1], validate=True)
    except (IndexError, binascii.Error) as error:
        raise ValueError(f"{line[:60]!r} is not a public key") from error
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")


def plain_address(text: str) -> str:
    """An address or a name as it is stored and connected to: no brackets, no point at its end, small letters.

    ValueError, in words for a person, for what cannot be one or is not the same machine for everybody.
    """
    name = text.strip().lower().removesuffix(".")
    if name.startswith("[") and name.endswith("]"):
        name = name[1:-1]
    if ":" not in name and "%" not in name:
        if "[" in name or "]" in name:
            raise ValueError("brackets belong around a whole IPv6 address only")
        return name
    if "%" in name:
        raise ValueError(f"{name} names a network card, and each machine names its own: give an address without %")
    try:
        address = ipaddress.IPv6Address(name)
    except ValueError:
        raise ValueError(f"{name} is no IPv6 address; a port is given apart from the address") from None
    if address.is_link_local:
        raise ValueError(
            f"{name} is a link-local address, which leads elsewhere from each network card: give the host's name or "
            "one of its other addresses"
        )
    return str(address)


def new_key_pair(comment: str) -> tuple[str, str]:
    """A new ed25519 key: the private key as OpenSSH text, and the line for authorized_keys with this comment."""
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()).decode()
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    return private, f"{public} {comment}"
