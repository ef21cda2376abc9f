"""Which option of a load tool says how much it does at once, and the tool with another value of it."""

from __future__ import annotations

from agents.base.errors import PlanError
from agents.drivers.base.driver import AnyTool, Driver
from agents.drivers.command.driver import CommandDriver
from agents.drivers.jmeter.driver import Jmeter

CONCURRENCY_FIELDS: dict[str, str] = {
    "ab": "connections",
    "autocannon": "connections",
    "command": "connections",
    "h2load": "connections",
    "hey": "connections",
    "hyperfoil": "connections",
    "jmeter": "users",
    "k6": "users",
    "oha": "connections",
    "siege": "connections",
    "wrk": "connections",
    "wrk2": "connections",
}
"""The option is the unit as well. vegeta is none of them: it opens what its rate needs, its connections are a bound."""


def concurrency(driver: Driver) -> int | None:
    """How many connections or users the tool has with its options; None when something else decides it."""
    value = getattr(driver, CONCURRENCY_FIELDS.get(driver.kind, ""), None)
    return None if value is None or _why_not(driver) else int(value)


def concurrency_text(driver: Driver) -> str:
    """The same in words, "64 connections" or "20 users"; empty when something else decides it."""
    count = concurrency(driver)
    if count is None:
        return ""
    unit = CONCURRENCY_FIELDS[driver.kind]
    return f"{count:,} {unit.removesuffix('s') if count == 1 else unit}"


def at_concurrency(driver: AnyTool, count: int) -> AnyTool:
    """The same tool with so many connections or users. PlanError when its other options do not go with them."""
    if reason := _why_not(driver):
        raise PlanError(reason)
    field = CONCURRENCY_FIELDS[driver.kind]
    return driver.with_option(field, count, refusal=f"cannot use {count:,} {field}")


def _why_not(driver: Driver) -> str:
    field = CONCURRENCY_FIELDS.get(driver.kind)
    if field is None:
        tools = ", ".join(sorted(CONCURRENCY_FIELDS))
        return f"{driver.kind} has no number of connections or users that makes its load; {tools} have one."
    told = "{" + field + "}"
    if isinstance(driver, CommandDriver) and not any(told in argument for argument in driver.argv):
        return f"the command cannot be told how many connections to open: its argv has no {told}."
    if isinstance(driver, Jmeter) and driver.jmx and not any(told in str(v) for v in driver.properties.values()):
        return f"the uploaded plan cannot be told how many users it has: none of its properties holds {told}."
    return ""
