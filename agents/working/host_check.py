"""A look at one host for the test of its connection: the keys that it shows, or what a run would find there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from agents import facts
from agents.base.clock import ahead_of_run_s, run_clock_s
from agents.base.errors import CommandError, ConnectError, HostError, HostKeyRefused, PlanError
from agents.base.installation import Installation
from agents.facts.access import Access
from agents.remote import survey
from agents.remote.address import Address, HostKey
from agents.remote.ssh import SshSession, connect, scan_host_keys
from agents.running.needs import look
from agents.running.outfit import HostFinding, look_for, look_for_ways

MOST_WAYS = 5
"""Servers to which the test of a driver host tries the way: each that is shut takes four seconds."""


@dataclass(frozen=True)
class HostAsked:
    """What is looked at: `serves` and `drives` are the parts that it may have, `servers` where it would find others."""

    address: Address
    serves: bool
    drives: bool
    servers: Mapping[str, str]


@dataclass(frozen=True)
class Seen:
    """What a test brought: the keys of a host that is to be approved, or the facts and the clock of a known one.

    `profile` is the stable part of the facts with its `digest`, "" when nobody logged in; `unread` what could not be
    read. `remark`: what it does without. `notes`: what else is to be told. `findings`: what runs may use there.
    """

    offered: tuple[HostKey, ...] = ()
    digest: str = ""
    profile: Mapping[str, str] | None = None
    unread: Mapping[str, str] | None = None
    access: Access | None = None
    clock_ahead_s: float | None = None
    remark: str = ""
    notes: tuple[str, ...] = ()
    findings: tuple[HostFinding, ...] = ()


class Unfit(PlanError):
    """The host lacks what every run needs; `findings` are told with it, so that one look names all that is missing."""

    def __init__(self, message: str, hint: str, findings: tuple[HostFinding, ...]) -> None:
        super().__init__(message, hint=hint)
        self.findings = findings


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
