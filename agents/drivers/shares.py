"""What each of several driver hosts does of the load that a workload asks for. What cannot be divided is refused."""

from __future__ import annotations

from typing import TypeVar

from pydantic import ValidationError

from agents.base.errors import PlanError
from agents.base.model import first_problem
from agents.drivers.base.driver import Driver
from agents.drivers.command.driver import CommandDriver
from agents.drivers.jmeter.driver import Jmeter
from agents.drivers.k6.driver import K6

AnyTool = TypeVar("AnyTool", bound=Driver)

DIVIDED: dict[str, dict[str, str]] = {
    "ab": {"connections": "connections"},
    "autocannon": {"connections": "connections", "offered_rate_rps": "requests/s"},
    "command": {"connections": "connections", "offered_rate_rps": "requests/s"},
    "h2load": {"connections": "connections"},
    "hey": {"connections": "connections", "limit_rps": "requests/s"},
    "hyperfoil": {"connections": "connections", "offered_rate_rps": "requests/s"},
    "jmeter": {"users": "users", "warm_up_users": "users to warm up", "offered_rate_rps": "requests/s"},
    "k6": {"users": "users", "max_users": "users at most", "arrival_rate_rps": "requests/s"},
    "oha": {"connections": "connections", "offered_rate_rps": "requests/s"},
    "siege": {"connections": "connections"},
    "vegeta": {"offered_rate_rps": "requests/s"},
    "wrk": {"connections": "connections"},
    "wrk2": {"connections": "connections", "offered_rate_rps": "requests/s"},
}
"""Options of a tool that are divided, with their unit. Threads are not: each driver host has CPUs of its own. Nor is
what h2load sends on each connection, and what only bounds a tool (the connections of vegeta, the requests of ab)."""


def share_of(tool: AnyTool, hosts: int) -> AnyTool:
    """The tool as each of so many driver hosts runs it. PlanError when the load cannot be divided into equal parts."""
    if hosts == 1:
        return tool
    whole = _divided(tool)
    if not whole:
        raise PlanError(f"the load of {tool.kind} cannot be divided over {hosts} driver hosts: {_why_not(tool)}")
    for name, value in whole.items():
        if isinstance(value, int) and value % hosts:
            what = f"{value:,} {DIVIDED[tool.kind][name]}"
            raise PlanError(f"{what} cannot be divided evenly over {hosts} driver hosts; give a multiple of {hosts}")
    shares = {name: value // hosts if isinstance(value, int) else value / hosts for name, value in whole.items()}
    try:
        return type(tool).model_validate({**tool.model_dump(by_alias=True), **shares})
    except ValidationError as error:
        problem = first_problem(error)[1]
        raise PlanError(
            f"{tool.kind} cannot run with its share of the load on {hosts} driver hosts: {problem}"
        ) from error


def share_words(tool: Driver, hosts: int) -> str:
    """The share in words: "16 of 32 connections, 250 of 500 requests/s". PlanError as for `share_of`."""
    part, whole = _divided(share_of(tool, hosts)), _divided(tool)
    return ", ".join(f"{part[name]:,} of {value:,} {DIVIDED[tool.kind][name]}" for name, value in whole.items())


def _divided(tool: Driver) -> dict[str, int | float]:
    """The options that make up the load, as far as they are given; none when something else decides it."""
    if _why_not(tool):
        return {}
    values = {name: getattr(tool, name) for name in DIVIDED[tool.kind]}
    return {name: value for name, value in values.items() if value is not None}


def _why_not(tool: Driver) -> str:
    if isinstance(tool, Jmeter) and tool.jmx and not any("{users}" in str(value) for value in tool.properties.values()):
        return "the users are in the uploaded plan; give them to it as a property with {users}"
    if isinstance(tool, K6) and tool.script:
        return "a script of its own decides the load"
    if isinstance(tool, CommandDriver) and tool.connections is None and tool.offered_rate_rps is None:
        return "it has neither connections nor offered_rate_rps"
    return ""
