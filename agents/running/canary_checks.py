"""Canaries on the hosts of a run: one after the other, as two at once would be each other's load."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from agents.base.command import Command, script
from agents.base.errors import CommandError, ConnectError, ParseError
from agents.base.session import Session
from agents.events import Role
from agents.running.canaries import (
    CANARIES,
    NETWORK_PORT,
    CanaryName,
    cpu_command,
    disk_command,
    network_commands,
)
from agents.spec import RunSpec

_HAS = 'command -v "$1" >/dev/null'
_SHOWN_CHARS = 300


@dataclass(frozen=True)
class CanaryReading:
    """What one check of the host in `role` gave, in the unit of `CANARIES[check]`; None with the `problem` in words.

    `to`: the role of the host at the other end, of a network check; "" else.
    """

    role: Role
    check: CanaryName
    value: float | None
    problem: str = ""
    to: Role = ""


async def check_host(session: Session, role: Role, *, disk: bool) -> tuple[CanaryReading, ...]:
    """A CPU loop and, with `disk`, random reads on one host. Never raises for a check that could not be made."""
    found = [await _reading(role, "cpu", lambda: _said(session, cpu_command()))]
    if disk:
        found.append(await _reading(role, "disk", lambda: _said(session, disk_command())))
    return tuple(found)


async def check_way(
    sender: Session, role: Role, receiver: Session, to: Role, address: str, port: int = NETWORK_PORT
) -> CanaryReading:
    """How much arrives at `receiver`, which the sender reaches at `address`. Never raises when it cannot be measured.

    `port` is free there, else who listens already is asked.
    """
    listen, send = network_commands(address, port)

    async def measured() -> str:
        if not (await receiver.run(script(_HAS, "iperf3"))).ok or not (await sender.run(script(_HAS, "iperf3"))).ok:
            return ""
        listening = asyncio.create_task(receiver.run(listen))
        try:
            return await _said(sender, send)
        finally:
            await asyncio.wait([listening])  # it ends by itself, and nothing of it may stay

    return await _reading(role, "network", measured, to)


async def check_hosts(
    spec: RunSpec, sessions: Mapping[Role, Session], check: Callable[[], None]
) -> tuple[CanaryReading, ...]:
    """All hosts of a run, each once: CPUs of all, disks of the servers, the way from each driver host to the SUT.

    `check` is asked between two of them, and may raise to end it.
    """
    servers = {part.role for part in spec.parts}
    found: list[CanaryReading] = []
    seen: set[str] = set()
    for role, host in spec.hosts.items():
        if host.name in seen:
            continue
        seen.add(host.name)
        check()
        found += await check_host(sessions[role], role, disk=role in servers)
    loaded = spec.parts[0].role
    for role, host in spec.hosts.items():
        if role not in servers and host.name != spec.sut.name:
            check()
            found.append(await check_way(sessions[role], role, sessions[loaded], loaded, spec.sut.target_address))
    return tuple(found)


async def _said(session: Session, command: Command) -> str:
    return (await session.run(command)).check(f"The check on {session.host}").text


async def _reading(role: Role, name: CanaryName, measure: Callable[[], Awaitable[str]], to: Role = "") -> CanaryReading:
    canary = CANARIES[name]
    try:
        value = canary.parse(await measure())
    except (CommandError, ConnectError, ParseError) as error:
        return CanaryReading(role, name, None, error.message[:_SHOWN_CHARS], to)
    if value is None:
        return CanaryReading(role, name, None, f"{canary.package} is not installed there.", to)
    return CanaryReading(role, name, value, to=to)
