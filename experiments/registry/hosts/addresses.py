"""Hosts as a RunSpec names them."""

from __future__ import annotations

from agents.spec import HostAddress
from experiments.models import Host


def address_of(host: Host) -> HostAddress:
    """How a run reaches the host; never the private key."""
    return HostAddress(
        name=host.name,
        address=host.address,
        port=host.port,
        user=host.user,
        host_key=host.host_key,
        data_address=host.data_address,
    )
