"""A host's keys: the pinned one of the host, and the sealed one that BenchHub logs in with."""

from __future__ import annotations

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
    load_ssh_private_key,
)

from agents.base.errors import ConnectError
from agents.remote.address import Address, HostKey
from experiments.models import Host
from experiments.registry.errors import RequestError
from experiments.registry.hosts.denied import denial
from experiments.registry.hosts.keys import KeyFileError, unseal


def shown_keys(lines: str) -> tuple[HostKey, ...]:
    """The keys that `Host.offered_host_key` holds, one a line, in the order in which the host was asked for them."""
    return tuple(HostKey(line) for line in lines.splitlines() if line)


def pinned_key(host: Host) -> HostKey | None:
    """The approved key; None before the first approval."""
    return HostKey(host.host_key) if host.host_key else None


def key_row(host: Host) -> str:
    """The name under which the host's private key is sealed."""
    return f"host:{host.pk}"


def public_half(private_key: str) -> str:
    """The authorized_keys line of a private key in OpenSSH or PEM form, without a passphrase."""
    data = private_key.strip().encode() + b"\n"
    for load in (load_ssh_private_key, load_pem_private_key):
        try:
            key = load(data, password=None)
            return key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
        except TypeError as error:
            raise RequestError("Give the private key without a passphrase.", field="private_key") from error
        except (ValueError, UnsupportedAlgorithm):
            continue
    raise RequestError("This is not a private key in OpenSSH or PEM form.", field="private_key")


def connect_args(host: Host) -> tuple[Address, str]:
    """Where the host is and the private key to log in with. For workers only; ConnectError when no key opens it.

    Its name is looked up again each time: it may lead to the installation's own database since it was stored.
    """
    if host.site is not None and host.site.keys_stay:
        raise ConnectError(
            f"The keys of site {host.site.name} stay there, so only its workers log in to {host.name}.",
            hint="They do runs, dry runs, tests of connections and restores; checks on request are not made there.",
            permanent=True,
        )
    first = host
    while first.jump is not None:  # the name of a host behind others is looked up by the last of them
        first = first.jump
    for address in {first.address, host.data_address} - {""}:
        if why := denial(address, first.port, look_up=True):
            raise ConnectError(why, hint="Give the host another address.", permanent=True)
    try:
        private_key = unseal(bytes(host.private_key), row=key_row(host))
    except KeyFileError as error:
        raise ConnectError(
            f"The private key for {host.name} cannot be opened: {error}",
            hint="Give the workers the key file with which it was stored, or store the key again.",
            permanent=True,
        ) from error
    return way_to(host), private_key


def way_to(host: Host) -> Address:
    """Where the host is and the key that it must show, with the jump hosts on the way."""
    jump = way_to(host.jump) if host.jump else None
    return Address(host.name, host.address, host.port, host.user, host.host_key, jump)
