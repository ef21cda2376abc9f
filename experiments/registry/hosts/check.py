"""The connection test of a host. Runs in workers only: here private keys are decrypted."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace

from django.db import transaction

from agents import facts
from agents.base.clock import ahead_of_run_s, run_clock_s, set_run_clock
from agents.base.errors import (
    MISTAKE_HINT,
    AgentError,
    CommandError,
    ConnectError,
    HostError,
    HostKeyRefused,
    PlanError,
)
from agents.base.installation import Installation
from agents.remote import survey
from agents.remote.address import Address, HostKey
from agents.remote.ssh import SshSession, connect, scan_host_keys
from agents.running.needs import look
from agents.running.outfit import HostFinding, look_for, look_for_ways
from experiments.models import Host
from experiments.registry.database_clock import database_clock, database_now
from experiments.registry.hosts.host_keys import connect_args, pinned_key
from experiments.registry.hosts.installation import installation
from experiments.registry.hosts.inventory import check_state
from experiments.registry.hosts.machines import (
    are_one,
    leased_sister,
    recognise,
    same_machine_as,
    settle,
    sister_name,
    sisters_of,
)
from experiments.registry.hosts.profiles import store_profile

logger = logging.getLogger(__name__)

MOST_WAYS = 5
"""Servers to which the test of a driver host tries the way: each that is shut takes four seconds."""


@dataclass(frozen=True)
class _Seen:
    """What a test brought: the keys of a host that is to be approved, or the facts and the clock of a known one.

    `remark`: what it does without. `notes`: what else is to be told. `findings`: what runs may use there.
    """

    offered: tuple[HostKey, ...] = ()
    found: facts.HostFacts | None = None
    clock_ahead_s: float | None = None
    remark: str = ""
    notes: tuple[str, ...] = ()
    findings: tuple[HostFinding, ...] = ()


class _Unfit(PlanError):
    """The host lacks what every run needs; `findings` are told with it, so that one look names all that is missing."""

    def __init__(self, message: str, hint: str, findings: tuple[HostFinding, ...]) -> None:
        super().__init__(message, hint=hint)
        self.findings = findings


def perform_check(host_id: int) -> None:
    """Test one host and store what it showed. Never raises for a host that cannot be reached.

    Without an approved key it only scans and offers the host's keys; with one it logs in, tries what a run needs there
    and reads the facts. Where the host shows another key than the approved one nobody logs in: its keys are offered.
    """
    host = Host.objects.select_related("jump", "leased_by").filter(pk=host_id).first()
    if host is None:
        return
    settle(host, look_up=True)
    if used := _used(host):  # a login beside a measurement is load of our own
        message = f"{used}, so BenchHub did not log in beside it."
        Host.objects.filter(pk=host.pk).update(
            last_check=check_state("ok", message, "Test it again when the run has ended.")
        )
        return
    try:
        set_run_clock(database_clock())
        seen = asyncio.run(_look(host, installation(), _servers(host)))
    except AgentError as error:
        _store_failure(host, error.message, error.hint, error.findings if isinstance(error, _Unfit) else ())
        return
    except Exception:  # the page waits for the row, and the check would be repeated for ever
        logger.exception("the connection test of host %s", host.pk)
        _store_failure(host, "BenchHub made a mistake in testing this host.", MISTAKE_HINT)
        return
    if seen.offered:
        _store_offer(host, seen.offered)
    elif seen.found is not None:
        _store_facts(host, seen.found, seen)


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


async def _look(host: Host, here: Installation, servers: Mapping[str, str]) -> _Seen:
    address, private_key = connect_args(host)
    if not host.host_key:
        return _Seen(offered=await _shown_keys(address, private_key))
    try:
        session = await connect(address, private_key)
    except HostKeyRefused as error:
        if error.host != host.name:  # a jump host on the way: its own page has its keys
            raise
        try:
            shown = await _shown_keys(address, private_key)
        except ConnectError:
            raise error from None
        if any(key.line == host.host_key for key in shown):
            raise  # it showed the right one a moment later: machines that take turns at one address
        return _Seen(offered=shown)
    return await _look_inside(host, here, session, servers)


async def _shown_keys(address: Address, private_key: str) -> tuple[HostKey, ...]:
    if address.jump is None:
        return await scan_host_keys(address.address, address.port)
    jump = await connect(address.jump, private_key)
    try:
        return await scan_host_keys(address.address, address.port, jump)
    finally:
        await jump.close()


async def _look_inside(host: Host, here: Installation, session: SshSession, servers: Mapping[str, str]) -> _Seen:
    try:
        has = await look(session, "all" if host.roles == Host.Roles.SUT else "driver", host.user)
        if complaint := has.complaint(host.name):
            raise _Unfit(complaint[0], complaint[1], await _findings(host, session, servers))
        surveyed = await survey.read(session)
        if surveyed.unfit:
            raise HostError(f"{host.name} has no place for runs: {surveyed.unfit}.", hint=survey.UNFIT_HINT)
        asked_s = run_clock_s()
        found = await facts.collect(session)
        ahead_s = _clock_ahead_s(found, asked_s, run_clock_s())
        if not found.profile():
            raise PlanError(
                f"{host.name} shows none of its facts, so BenchHub does not know what it would measure on.",
                hint="Are /proc and /sys mounted there, and may this login read them?",
            )
        seen = _Seen(found=found, clock_ahead_s=ahead_s, remark=has.remark(), notes=surveyed.notes(here))
        return replace(seen, findings=await _findings(host, session, servers))
    finally:
        await session.close()


async def _findings(host: Host, session: SshSession, servers: Mapping[str, str]) -> tuple[HostFinding, ...]:
    """What it has besides; nothing where too little of a host is there to look."""
    serves, drives = host.roles != Host.Roles.DRIVER, host.roles != Host.Roles.SUT
    try:
        found = await look_for(session, host.user, serves=serves, drives=drives)
        ways = await look_for_ways(session, dict(list(servers.items())[:MOST_WAYS]))
        return tuple(sorted((*found, *ways), key=lambda one: one.result == "there"))
    except CommandError:
        return ()


def _store_failure(host: Host, message: str, hint: str, findings: tuple[HostFinding, ...] = ()) -> None:
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


def _clock_ahead_s(found: facts.HostFacts, asked_s: float, answered_s: float) -> float | None:
    host_s = found.access.clock_s if found.access else None
    return None if host_s is None else ahead_of_run_s(host_s, asked_s, answered_s)


def _store_facts(host: Host, found: facts.HostFacts, seen: _Seen) -> None:
    recognise(host.pk, found.access)
    with transaction.atomic():
        locked = Host.objects.select_for_update(of=("self",)).get(pk=host.pk)
        store_profile(locked, found.digest(), found.profile())
        if locked.state == Host.State.UNREACHABLE:
            locked.state, locked.state_reason = Host.State.READY, ""
        unread = "".join(f" Not read: {kind} ({problem})." for kind, problem in found.unread.items())
        same = same_machine_as(locked, sisters_of([locked]).of(locked.pk))
        shared = (f"It is the same machine as {same}: one run at a time uses them.",) if same else ()
        said = " ".join((f"Logged in and read {len(found.profile())} facts.{unread}", *shared, *seen.notes))
        locked.last_check = check_state("ok", said, seen.remark, seen.findings)
        locked.clock_ahead_s = seen.clock_ahead_s
        locked.offered_host_key = ""  # it has proven to be the approved one
        locked.save(update_fields=["state", "state_reason", "last_check", "clock_ahead_s", "offered_host_key"])
