"""How much a tool does at once, and the tool with another value of it. Its class says which option that is."""

from __future__ import annotations

from agents.base.errors import PlanError
from agents.drivers import DRIVERS
from agents.drivers.base.driver import AnyTool, Driver


def concurrency(driver: Driver) -> int | None:
    """How many connections or users the tool has with its options; None when something else decides it."""
    value = getattr(driver, driver.concurrency_option, None)
    return None if value is None or _why_not(driver) else int(value)


def concurrency_text(driver: Driver) -> str:
    """The same in words, "64 connections" or "20 users"; empty when something else decides it."""
    count = concurrency(driver)
    if count is None:
        return ""
    unit = driver.concurrency_option
    return f"{count:,} {unit.removesuffix('s') if count == 1 else unit}"


def at_concurrency(driver: AnyTool, count: int) -> AnyTool:
    """The same tool with so many connections or users. PlanError when its other options do not go with them."""
    if reason := _why_not(driver):
        raise PlanError(reason)
    option = driver.concurrency_option
    return driver.with_option(option, count, refusal=f"cannot use {count:,} {option}")


def _why_not(driver: Driver) -> str:
    if driver.concurrency_option:
        return driver.why_no_concurrency()
    tools = ", ".join(sorted(kind for kind, tool in DRIVERS.items() if tool.concurrency_option))
    return f"{driver.kind} has no number of connections or users that makes its load; {tools} have one."
