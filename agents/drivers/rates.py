"""Which option of a load tool is the rate that it offers, and the tool with another one."""

from __future__ import annotations

from agents.base.errors import PlanError
from agents.drivers.base.driver import AnyTool, Driver
from agents.drivers.command.driver import CommandDriver
from agents.drivers.jmeter.driver import Jmeter

RATE_FIELDS: dict[str, str] = {
    "autocannon": "offered_rate_rps",
    "command": "offered_rate_rps",
    "h2load": "rate_per_connection_rps",
    "hyperfoil": "offered_rate_rps",
    "jmeter": "offered_rate_rps",
    "k6": "arrival_rate_rps",
    "oha": "offered_rate_rps",
    "vegeta": "offered_rate_rps",
    "wrk2": "offered_rate_rps",
}
"""Tools whose requests follow a schedule. hey is not one of them: it leaves out what it is late with."""

_RATE = "{offered_rate_rps}"
_PER_CONNECTION = frozenset({"h2load"})


def rate_step_rps(driver: Driver, hosts: int = 1) -> int:
    """The smallest difference between two rates that so many hosts with this tool can offer: whole requests per second
    of each of them.

    PlanError when it cannot offer a rate.
    """
    _field(driver)
    return int(driver.connections) if driver.kind in _PER_CONNECTION else hosts  # type: ignore[attr-defined]


def offered_rate_rps(driver: Driver) -> float | None:
    """What the tool offers with its options; None without a rate."""
    value = getattr(driver, RATE_FIELDS.get(driver.kind, ""), None)
    if value is None:
        return None
    return float(value * driver.connections) if driver.kind in _PER_CONNECTION else float(value)  # type: ignore[attr-defined]


def at_rate(driver: AnyTool, rate_rps: float, hosts: int = 1) -> AnyTool:
    """The same tool with the nearest rate that so many hosts can offer. PlanError when its options forbid one."""
    field = _field(driver)
    # The option counts requests per second, of all hosts together or of each connection.
    steps = max(1, round(rate_rps / rate_step_rps(driver, hosts)))
    rate = steps if driver.kind in _PER_CONNECTION else steps * hosts
    return driver.with_option(field, rate, refusal="cannot offer a rate with these options")


def _field(driver: Driver) -> str:
    field = RATE_FIELDS.get(driver.kind)
    if field is None:
        tools = ", ".join(sorted(RATE_FIELDS))
        raise PlanError(f"{driver.kind} cannot offer a rate of requests; {tools} can.")
    if isinstance(driver, CommandDriver) and not any(_RATE in argument for argument in driver.argv):
        raise PlanError(f"the command cannot be told to offer a rate: its argv has no {_RATE}.")
    if isinstance(driver, Jmeter) and driver.jmx and not driver.tells_rate:
        raise PlanError(f"the uploaded plan cannot be told to offer a rate: none of its properties holds {_RATE}.")
    return field
