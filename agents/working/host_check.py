"""A look at one host for the test of its connection: the keys that it shows, or what a run would find there."""

from __future__ import annotations

from dataclasses import replace

from agents import facts
from agents.base.clock import ahead_of_run_s, run_clock_s
from agents.base.errors import CommandError, ConnectError, HostError, HostKeyRefused, PlanError
from agents.base.installation import Installation
from agents.remote import survey
from agents.remote.address import Address, HostKey
from agents.remote.ssh import SshSession, connect, scan_host_keys
from agents.running.needs import look
from agents.running.outfit import HostFinding, look_for, look_for_ways
from agents.working.host_seen import HostAsked, Seen, Unfit

MOST_WAYS = 5
"""Servers to which the test of a driver host tries the way: each that is shut takes four seconds."""


async def look_at(host: HostAsked, private_key: str, here: Installation) -> Seen:
    """Without an approved key only the host's keys; else log in, try what a run needs there and read the facts.

    Where the host shows another key than the approved one nobody logs in: its keys are told. Raises AgentError.
    """
    address = host.address
    if not address.host_key:
        return Seen(offered=await _shown_keys(address, private_key))
    try:
        session = await connect(address, private_key)
    except HostKeyRefused as error:
        if error.host != address.name:  # a jump host on the way: its own page has its keys
            raise
        try:
            shown = await _shown_keys(address, private_key)
        except ConnectError:
            raise error from None
        if any(key.line == address.host_key for key in shown):
            raise  # it showed the right one a moment later: machines that take turns at one address
        return Seen(offered=shown)
    return await _look_inside(host, here, session)


async def _shown_keys(address: Address, private_key: str) -> tuple[HostKey, ...]:
    if address.jump is None:
        return await scan_host_keys(address.address, address.port)
    jump = await connect(address.jump, private_key)
    try:
        return await scan_host_keys(address.address, address.port, jump)
    finally:
        await jump.close()


async def _look_inside(host: HostAsked, here: Installation, session: SshSession) -> Seen:
    name, user = host.address.name, host.address.user
    try:
        has = await look(session, "driver" if host.drives else "all", user)
        if complaint := has.complaint(name):
            raise Unfit(complaint[0], complaint[1], await _findings(host, session))
        surveyed = await survey.read(session)
        if surveyed.unfit:
            raise HostError(f"{name} has no place for runs: {surveyed.unfit}.", hint=survey.UNFIT_HINT)
        asked_s = run_clock_s()
        found = await facts.collect(session)
        ahead_s = _clock_ahead_s(found, asked_s, run_clock_s())
        if not found.profile():
            raise PlanError(
                f"{name} shows none of its facts, so BenchHub does not know what it would measure on.",
                hint="Are /proc and /sys mounted there, and may this login read them?",
            )
        seen = Seen(
            digest=found.digest(),
            profile=found.profile(),
            unread=found.unread,
            access=found.access,
            clock_ahead_s=ahead_s,
            remark=has.remark(),
            notes=surveyed.notes(here),
        )
        return replace(seen, findings=await _findings(host, session))
    finally:
        await session.close()


async def _findings(host: HostAsked, session: SshSession) -> tuple[HostFinding, ...]:
    """What it has besides; nothing where too little of a host is there to look."""
    try:
        found = await look_for(session, host.address.user, serves=host.serves, drives=host.drives)
        ways = await look_for_ways(session, dict(list(host.servers.items())[:MOST_WAYS]))
        return tuple(sorted((*found, *ways), key=lambda one: one.result == "there"))
    except CommandError:
        return ()


def _clock_ahead_s(found: facts.HostFacts, asked_s: float, answered_s: float) -> float | None:
    host_s = found.access.clock_s if found.access else None
    return None if host_s is None else ahead_of_run_s(host_s, asked_s, answered_s)
