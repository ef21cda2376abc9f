"""The properties that a JMeter plan asks for: which are secrets, and what each probably means by its name."""

from __future__ import annotations

import re
from dataclasses import dataclass

from agents.base.redaction import HIDDEN, masked
from agents.drivers.jmeter import jmx

_SECRET_TOO = re.compile(r"token|pwd", re.IGNORECASE)

_MEANS: dict[str, frozenset[str]] = {
    "scheme": frozenset({"scheme", "proto", "protocol"}),
    "host": frozenset({"host", "hostname", "server", "domain", "targethost"}),
    "port": frozenset({"port", "targetport"}),
    "path": frozenset({"path", "url", "uri"}),
    "duration_s": frozenset({"duration", "durations", "durationseconds", "durationsec"}),
    "users": frozenset({"users", "thread", "threads", "numthreads", "vusers"}),
    "ramp_up_s": frozenset({"ramp", "rampup", "rampups", "rampuptime", "ramptime"}),
    "loops": frozenset({"loop", "loops", "loopcount", "iterations"}),
}


@dataclass(frozen=True)
class PlanProperty:
    """`default` is the plan's own, None = none or a secret. `suggestion` is "" or a field such as {host}."""

    name: str
    default: str | None
    secret: bool
    suggestion: str


def plan_properties(text: str) -> list[PlanProperty]:
    """The properties of a plan in its order. PlanError when it cannot be read."""
    found = []
    for one in jmx.parameters(text):
        secret = any(_SECRET_TOO.search(part) or masked(part, "value") == HIDDEN for part in one.name.split("."))
        found.append(PlanProperty(one.name, None if secret else one.default, secret, _suggestion(one.name)))
    return found


def suggested(properties: list[PlanProperty]) -> dict[str, str]:
    """The properties whose names say what they mean, with the field that BenchHub fills in for each phase."""
    return {one.name: one.suggestion for one in properties if one.suggestion}


def _suggestion(name: str) -> str:
    plain = re.sub(r"[^a-z]", "", name.lower())
    return next((f"{{{field}}}" for field, names in _MEANS.items() if plain in names), "")
