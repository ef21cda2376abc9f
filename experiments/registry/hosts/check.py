"""The connection test of a host. Runs in workers only: here private keys are decrypted."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from django.db import transaction

from agents import facts
from agents.base.clock import ahead_s, run_clock_s, set_run_clock
from agents.base.errors import MISTAKE_HINT, AgentError, HostError, PlanError
from agents.base.installation import Installation
from agents.remote import survey
from agents.remote.address import HostKey
from agents.remote.ssh import connect, scan_host_key
from agents.running.needs import look
from experiments.models import Host
from experiments.registry.database_clock import database_now
from experiments.registry.hosts.host_keys import connect_args, fingerprint
from experiments.registry.hosts.installation import installation
from experiments.registry.hosts.inventory import check_state
from experiments.registry.hosts.machines import (
    leased_sister,
    recognise,
    same_machine_as,
    settle,
    sister_name,
    sisters_of,
)
from experiments.registry.hosts.profiles import store_profile

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Seen:
    """What a test brought: the offered key of a new host, or the facts and the clock of a known one.

    `remark`: what it does without. `notes`: what else is to be told.
    """

    offered: HostKey | None = None
    found: facts.HostFacts | None = None
    clock_ahead_s: float | None = None
    remark: str = ""
    notes: tuple[str, ...] = ()


def perform_check(host_id: int) -> None:
    """Test one host and store what it showed. Never raises for a host that cannot be reached.

    Without an approved key it only scans and offers the host's key; with one it logs in, tries what a run needs there
    and reads the facts.
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
        set_run_clock(database_now().timestamp())
        seen = asyncio.run(_look(host, installation()))
    except AgentError as error:
        _store_failure(host, error.message, error.hint)
        return
    except Exception:  # the page waits for the row, and the check would be repeated for ever
        logger.exception("the connection test of host %s", host.pk)
        _store_failure(host, "BenchHub made a mistake in testing this host.", MISTAKE_HINT)
        return
    if seen.offered is not None:
        _store_offer(host, seen.offered)
    elif seen.found is not None:
        _store_facts(host, seen.found, seen)


def _used(host: Host) -> str:
    if host.leased_by is not None:
        return f"Run #{host.leased_by.number} was using this host"
    sister = leased_sister(sisters_of([host]).of(host.pk))
    return f"A run was using this machine as {sister_name(sister, host.team_id)}" if sister else ""


async def _look(host: Host, here: Installation) -> _Seen:
    address, private_key = connect_args(host)
    if not host.host_key:
        if address.jump is None:
            return _Seen(offered=await scan_host_key(address.address, address.port))
        jump = await connect(address.jump, private_key)
        try:
            return _Seen(offered=await scan_host_key(address.address, address.port, jump))
        finally:
            await jump.close()
    session = await connect(address, private_key)
    try:
        has = await look(session, "all" if host.roles == Host.Roles.SUT else "driver", host.user)
        if complaint := has.complaint(host.name):
            raise PlanError(complaint[0], hint=complaint[1])
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
        return _Seen(found=found, clock_ahead_s=ahead_s, remark=has.remark(), notes=surveyed.notes(here))
    finally:
        await session.close()


def _store_failure(host: Host, message: str, hint: str) -> None:
    with transaction.atomic():
        locked = Host.objects.select_for_update(of=("self",)).get(pk=host.pk)
        locked.last_check = check_state("failed", message, hint)
        if locked.state == Host.State.READY:
            locked.state, locked.state_reason = Host.State.UNREACHABLE, message
        locked.save(update_fields=["last_check", "state", "state_reason"])


def _store_offer(host: Host, offered: HostKey) -> None:
    message = f"The host shows the key {fingerprint(offered.line)}."
    hint = "Compare it with `ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub` on the host's console, then approve it."
    Host.objects.filter(pk=host.pk, host_key="").update(
        offered_host_key=offered.line, last_check=check_state("ok", message, hint), last_seen_at=database_now()
    )


def _clock_ahead_s(found: facts.HostFacts, asked_s: float, answered_s: float) -> float | None:
    host_s = found.access.clock_s if found.access else None
    return None if host_s is None else ahead_s(host_s, asked_s, answered_s)


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
        locked.last_check = check_state("ok", said, seen.remark)
        locked.clock_ahead_s = seen.clock_ahead_s
        locked.save(update_fields=["state", "state_reason", "last_check", "clock_ahead_s"])
