"""The tool with another offered rate. Its class says which option that is."""

from __future__ import annotations

from agents.base.errors import PlanError
from agents.drivers import DRIVERS
from agents.drivers.base.driver import AnyTool, Driver


def rate_step_rps(driver: Driver, hosts: int = 1) -> int:
    """The smallest difference between two rates that so many hosts with this tool can offer: whole requests per second
    of each of them.

    PlanError when it cannot offer a rate.
    """
    _insist(driver)
    return _connections(driver) if driver.rate_is_per_connection else hosts


def offered_rate_rps(driver: Driver) -> float | None:
    """What the tool offers with its options; None without a rate."""
    value = getattr(driver, driver.rate_option, None)
    if value is None:
        return None
    return float(value * _connections(driver)) if driver.rate_is_per_connection else float(value)


def at_rate(driver: AnyTool, rate_rps: float, hosts: int = 1) -> AnyTool:
    """The same tool with the nearest rate that so many hosts can offer. PlanError when its options forbid one."""
    # The option counts requests per second, of all hosts together or of each connection.
    steps = max(1, round(rate_rps / rate_step_rps(driver, hosts)))
    rate = steps if driver.rate_is_per_connection else steps * hosts
    return driver.with_option(driver.rate_option, rate, refusal="cannot offer a rate with these options")


def _connections(driver: Driver) -> int:
    return int(getattr(driver, driver.concurrency_option))


def _insist(driver: Driver) -> None:
    if not driver.rate_option:
        tools = ", ".join(sorted(kind for kind, tool in DRIVERS.items() if tool.rate_option))
        raise PlanError(f"{driver.kind} cannot offer a rate of requests; {tools} can.")
    if reason := driver.why_no_rate():
        raise PlanError(reason)
