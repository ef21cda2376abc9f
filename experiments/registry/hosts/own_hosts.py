"""Hosts that this machine made itself a moment ago: their keys are known, so nobody has to compare fingerprints."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import transaction

from agents.remote.address import fingerprint
from experiments.models import Host, Member
from experiments.registry.errors import Conflict
from experiments.registry.hosts.host_keys import public_half
from experiments.registry.hosts.inventory import add_host, approve_key, request_check, update_host
from experiments.registry.hosts.machines import lock_machines, settle


@dataclass(frozen=True)
class OwnHost:
    """Where such a host answers, who it is, and what opens it; `data_address` is where other hosts find its server.

    `address_prefix`: what every address that it ever had begins with, when it may come back under another one.
    """

    name: str
    address: str
    port: int
    user: str
    host_key: str
    private_key: str
    roles: str
    data_address: str = ""
    address_prefix: str = ""

    def was(self, host: Host) -> bool:
        """Whether a host of the team is this one, perhaps with another key or at another address since."""
        moved = bool(self.address_prefix) and host.address.startswith(self.address_prefix)
        same_place = moved or (host.address, host.port) == (self.address, self.port)
        return same_place or host.public_key == public_half(self.private_key)


@transaction.atomic
def keep_own_host(member: Member, own: OwnHost, *, is_demo: bool = False) -> Host:
    """The team's host of this name, ready for runs; a second call changes only what changed on the machine.

    Conflict when the team's host of this name is another machine: its address and its key would be lost.
    """
    lock_machines()
    host = Host.objects.for_team(member.team).filter(name=own.name).first()
    if host is not None and not own.was(host):
        raise Conflict(f"The team has another host named {own.name}, at {host.address}; rename that one first.")
    if host is None:
        host = add_host(
            member,
            name=own.name,
            address=own.address,
            port=own.port,
            user=own.user,
            private_key=own.private_key,
            roles=own.roles,
            data_address=own.data_address,
        )
    elif (host.user, host.data_address, host.public_key) != (own.user, own.data_address, public_half(own.private_key)):
        update_host(member, host, private_key=own.private_key, user=own.user, data_address=own.data_address)
        host.refresh_from_db()
    if (host.address, host.port, host.host_key) != (own.address, own.port, own.host_key):
        Host.objects.filter(pk=host.pk).update(
            address=own.address, port=own.port, offered_host_key=own.host_key, host_key="", is_demo=is_demo
        )
        host.refresh_from_db()
        settle(host)
        approve_key(member, host, fingerprint(own.host_key))
    elif host.state == Host.State.UNREACHABLE:  # it was off, as its machine was
        request_check(member, host)
    return host
