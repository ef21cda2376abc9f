"""What is asked of a test of a host's connection, and what is stored of it."""

from __future__ import annotations

from collections.abc import Mapping

from django.db import transaction

from agents.remote.address import HostKey
from agents.running.outfit import HostFinding
from agents.working.host_seen import HostAsked, Seen
from experiments.models import Host
from experiments.registry.database_clock import database_now
from experiments.registry.hosts.host_keys import pinned_key, way_to
from experiments.registry.hosts.inventory import check_state
from experiments.registry.hosts.machines import (
    are_one,
    leased_sister,
    recognise,
    same_machine_as,
    sister_name,
    sisters_of,
)
from experiments.registry.hosts.profiles import store_profile


def asked_of(host: Host) -> HostAsked:
    """What a look at the host has to know of it."""
    return HostAsked(
        way_to(host),
        serves=host.roles != Host.Roles.DRIVER,
        drives=host.roles != Host.Roles.SUT,
        servers=_servers(host),
    )


def store_seen(host: Host, seen: Seen) -> None:
    """Store what a look at the host brought; `host` is as it was when the look began."""
    if seen.offered:
        _store_offer(host, seen.offered)
    elif seen.profile is not None:
        _store_facts(host, seen, seen.profile)


def put_off(host: Host) -> bool:
    """Say so when a run uses the host: a login beside a measurement is load of our own."""
    used = _used(host)
    if used:
        message = f"{used}, so BenchHub did not log in beside it."
        Host.objects.filter(pk=host.pk).update(
            last_check=check_state("ok", message, "Test it again when the run has ended.")
        )
    return bool(used)


def _used(host: Host) -> str:
    if host.leased_by is not None:
        return f"Run #{host.leased_by.number} was using this host"
    sister = leased_sister(sisters_of([host]).of(host.pk))
    return f"A run was using this machine as {sister_name(sister, host.team_id)}" if sister else ""


def _servers(host: Host) -> dict[str, str]:
    """Where this driver host would find the team's servers; not one that is in use, nor its own machine."""
    if host.roles == Host.Roles.SUT:
        return {}
    suts = Host.objects.filter(team=host.team_id, leased_by=None).exclude(roles=Host.Roles.DRIVER).exclude(host_key="")
    named = suts.order_by("name").only("name", "address", "data_address", "machine_id")
    return {one.name: one.data_address or one.address for one in named if not are_one(one, host)}


def store_failure(host: Host, message: str, hint: str, findings: tuple[HostFinding, ...] = ()) -> None:
    """Store why the host could not be looked at; until it can, no run starts there."""
    with transaction.atomic():
        locked = Host.objects.select_for_update(of=("self",)).get(pk=host.pk)
        locked.last_check = check_state("failed", message, hint, findings)
        if locked.state == Host.State.READY:
            locked.state, locked.state_reason = Host.State.UNREACHABLE, message
        locked.save(update_fields=["last_check", "state", "state_reason"])


def _store_offer(host: Host, offered: tuple[HostKey, ...]) -> None:
    """Keep the keys for a person to approve. A host that had another one takes no run until then."""
    with transaction.atomic():
        locked = Host.objects.select_for_update(of=("self",)).get(pk=host.pk)
        if locked.host_key != host.host_key:
            return  # somebody approved meanwhile, and asked for a look of its own
        locked.offered_host_key = "\n".join(key.line for key in offered)
        first, pinned = offered[0], pinned_key(locked)
        where = f"`ssh-keygen -lf {first.file}`" if first.file else "`ssh-keygen -lf` and the public key's file"
        compare = f"Compare it with {where} on the host's console, then approve it."
        if pinned is None:
            message = f"The host shows the key {first}."
            locked.last_check = check_state("ok", message, compare)
            locked.last_seen_at = database_now()
        else:
            message = f"{locked.name} shows the key {first}, and approved is {pinned}. BenchHub did not log in."
            hint = "It was installed anew, its keys were made anew, or another machine answers at its address. "
            locked.last_check = check_state("failed", message, hint + compare)
            if locked.state == Host.State.READY:
                locked.state, locked.state_reason = Host.State.UNREACHABLE, message
        locked.save(update_fields=["offered_host_key", "last_check", "last_seen_at", "state", "state_reason"])


def _store_facts(host: Host, seen: Seen, profile: Mapping[str, str]) -> None:
    recognise(host.pk, seen.access)
    with transaction.atomic():
        locked = Host.objects.select_for_update(of=("self",)).get(pk=host.pk)
        store_profile(locked, seen.digest, profile)
        if locked.state == Host.State.UNREACHABLE:
            locked.state, locked.state_reason = Host.State.READY, ""
        unread = "".join(f" Not read: {kind} ({problem})." for kind, problem in (seen.unread or {}).items())
        same = same_machine_as(locked, sisters_of([locked]).of(locked.pk))
        shared = (f"It is the same machine as {same}: one run at a time uses them.",) if same else ()
        said = " ".join((f"Logged in and read {len(profile)} facts.{unread}", *shared, *seen.notes))
        locked.last_check = check_state("ok", said, seen.remark, seen.findings)
        locked.clock_ahead_s = seen.clock_ahead_s
        locked.offered_host_key = ""  # it has proven to be the approved one
        locked.save(update_fields=["state", "state_reason", "last_check", "clock_ahead_s", "offered_host_key"])
