"""What a source is asked: a channel's name and its PromQL with placeholders for the run and its hosts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from agents.system import MEMBER_PATTERN
from experiments.registry.errors import RequestError

PREFIX = "prometheus."
"""What stands before the name of such a channel."""
MOST_QUERIES = 20
MAX_CHANNEL = 60
MAX_UNIT = 20
MAX_PROMQL = 1000
SHORTEST_STEP_S = 1
LONGEST_STEP_S = 3600
USUAL_STEP_S = 15

OF_A_HOST = {
    "host": "the host's name",
    "address": "where BenchHub logs in to the host",
    "role": "the host's part in the run: sut, driver, driver-2 or the role of a member",
}
PLACEHOLDERS: Mapping[str, str] = {
    **OF_A_HOST,
    "run": "the run's number",
    "team": "the team's short name",
    "application": "the application's name",
    "step": "the step that is asked for, as in rate(x[{step}]): 15s; longer of a run of many hours",
}
"""What may stand between { and } in a query, and what it becomes."""

_CHANNEL = re.compile(r"[a-z][a-z0-9_]*")
_ROLE = re.compile(MEMBER_PATTERN)
_LABEL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLACEHOLDER = re.compile(r"(?<!\\p)(?<!\\P)\{([A-Za-z_]+)\}")
"""A name alone between braces is nothing in PromQL, but \\p{Greek} is in a regular expression."""
_QUOTED = re.compile(r"""[\\"'`\x00-\x1f]""")
_MAY_STAND = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)


@dataclass(frozen=True)
class ChannelQuery:
    """One channel. `role`: `sut`, `driver` (each driver host), or that of a member of the system.

    `label` names the label whose values tell several series of one answer apart; "" = one series is expected.
    """

    channel: str
    query: str
    unit: str = ""
    role: str = "sut"
    step_s: int = USUAL_STEP_S
    label: str = ""

    @property
    def is_of_a_host(self) -> bool:
        return not OF_A_HOST.keys().isdisjoint(_PLACEHOLDER.findall(self.query))

    def is_of(self, role: str) -> bool:
        """Whether a host with this part in a run is asked for."""
        return role == self.role or (self.role == "driver" and role.startswith("driver-"))

    def filled(self, values: Mapping[str, str], step_s: int) -> str:
        """The PromQL of a question with this step, each value escaped as PromQL escapes it between quotes."""
        known = {**values, "step": f"{step_s}s"}
        return _PLACEHOLDER.sub(lambda found: _escaped(known[found[1]]), self.query)


def queries_of(stored: Iterable[Mapping[str, Any]]) -> tuple[ChannelQuery, ...]:
    """What a source's column holds."""
    return tuple(ChannelQuery(**one) for one in stored)


def check_queries(given: Sequence[ChannelQuery]) -> list[dict[str, Any]]:
    """The queries as they are stored, else RequestError, whose field is `queries` or `queries.NUMBER.NAME`."""
    if not 1 <= len(given) <= MOST_QUERIES:
        raise RequestError(f"A source has 1 to {MOST_QUERIES} queries.", field="queries")
    seen = set[tuple[str, str]]()
    for number, one in enumerate(given):
        for name, why in _wrong_with(one):
            raise RequestError(why, field=f"queries.{number}.{name}")
        if (one.role, one.channel) in seen:
            raise RequestError(
                f"Two queries of the {one.role} have the channel {one.channel}.", field=f"queries.{number}.channel"
            )
        seen.add((one.role, one.channel))
    return [asdict(one) for one in given]


def _wrong_with(one: ChannelQuery) -> Iterable[tuple[str, str]]:
    """The names of what does not fit, and what to do."""
    if len(one.channel) > MAX_CHANNEL or not _CHANNEL.fullmatch(one.channel):
        yield (
            "channel",
            f"A channel begins with a letter and has 1 to {MAX_CHANNEL} lowercase letters, digits and underscores.",
        )
    if not _ROLE.fullmatch(one.role):
        yield "role", "The role is sut, driver (each driver host), or that of a member of the system, such as database."
    if len(one.unit) > MAX_UNIT or not (one.unit.isprintable() and one.unit == one.unit.strip()):
        yield "unit", f"A unit has at most {MAX_UNIT} printable characters: ratio, bytes, ms, requests/s."
    if not SHORTEST_STEP_S <= one.step_s <= LONGEST_STEP_S:
        yield "step_s", f"The step has {SHORTEST_STEP_S} to {LONGEST_STEP_S:,} seconds."
    if one.label and not (len(one.label) <= MAX_CHANNEL and _LABEL.fullmatch(one.label)):
        yield "label", "This is no name of a label of Prometheus: letters, digits and underscores."
    if why := _wrong_with_promql(one.query):
        yield "query", why


def _wrong_with_promql(query: str) -> str:
    """What can be said of it before the server is asked; "" when nothing is wrong with it."""
    if not query.strip() or len(query) > MAX_PROMQL:
        return f"A query has 1 to {MAX_PROMQL:,} characters of PromQL."
    if not all(char.isprintable() or char in "\n\t" for char in query):
        return "A query has printable characters only."
    if "$__" in query:
        return "Variables of Grafana such as $__rate_interval mean nothing here: write the time, such as [1m]."
    unknown = [name for name in _PLACEHOLDER.findall(query) if name not in PLACEHOLDERS]
    if unknown:
        return f"There is no placeholder {{{unknown[0][:40]}}}. These may stand there: {_MAY_STAND}."
    return ""


def _escaped(value: str) -> str:
    return _QUOTED.sub(lambda found: f"\\x{ord(found[0]):02x}", value)
