"""Each kind of driver with the fewest options that it takes."""

from __future__ import annotations

from typing import Any

from agents.drivers import DRIVERS
from agents.drivers.base.driver import Driver

LEAST: dict[str, dict[str, Any]] = {
    "ab": {"connections": 2},
    "autocannon": {"connections": 2},
    "h2load": {"connections": 2},
    "hey": {"connections": 2},
    "hyperfoil": {"connections": 2, "threads": 1},
    "k6": {"users": 2},
    "oha": {"connections": 2},
    "siege": {"connections": 2},
    "vegeta": {"offered_rate_rps": 100},
}
KINDS = list(LEAST)
HEADERS = {"X-Own": "a b; $(id)"}


def make(kind: str, **options: Any) -> Driver:
    return DRIVERS[kind].model_validate({**LEAST[kind], **options})
