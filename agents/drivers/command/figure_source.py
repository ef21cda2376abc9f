"""Where a figure stands in the output of a benchmark: a regular expression, or a path in its JSON."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import regex
from pydantic import Field, model_validator

from agents.base.errors import ParseError
from agents.base.model import Frozen
from agents.base.regular_expression import SIMPLER, RegularExpression
from agents.drivers.command.figures import number_in
from agents.formats.json_document import JsonObject
from agents.formats.report_lines import MAX_REPORT_CHARS
from agents.results.report import Direction

SEARCH_S = 1.0
"""For how long all expressions of a driver together may search one output."""
MAX_MATCHES = 100_000

_STEP = re.compile(r"""(?:^|\.)([A-Za-z_][A-Za-z0-9_-]{0,99})|\[([0-9]{1,6}|"[^"\x00-\x1f]{1,100}")\]""", re.ASCII)
_PICKS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "last": lambda values: values[-1],
    "first": lambda values: values[0],
    "sum": sum,
    "min": min,
    "max": max,
}


def _steps(path: str) -> list[str | int]:
    """The names and places of `latency.percentiles[3]["p(99.9)"]`. ValueError says what a path looks like."""
    steps: list[str | int] = []
    at = 0
    while at < len(path):
        match = _STEP.match(path, at)
        if not match:
            raise ValueError(
                f"'{path}' is not a path; write for example summary.p99, runs[0].rate or latency[\"p(99)\"]"
            )
        name, place = match.groups()
        steps.append(name or (place.strip('"') if place.startswith('"') else int(place)))
        at = match.end()
    return steps


class FigureSource(Frozen):
    """`pattern` has one group, or a group `value`; `json_path` is for an output with one JSON object in it.

    What is found, times `scale`, is in the unit of the figure's name. `unit` and `direction` belong to figures of a
    team's own. An `optional` figure may be missing. A figure of a team's own below `low` or above `high` makes the
    report unusable; without them its name says what cannot be.
    """

    pattern: RegularExpression = ""
    json_path: str = Field("", max_length=500)
    pick: Literal["last", "first", "sum", "min", "max"] = "last"
    """Which one when the pattern matches several times."""
    scale: float = Field(1.0, gt=0, le=1e12)
    unit: str = Field("", pattern=r"^[^\x00-\x1f\x7f]{0,20}$")
    direction: Direction | None = None
    optional: bool = False
    low: float | None = Field(None, ge=-1e18, le=1e18, exclude_if=lambda bound: bound is None)
    high: float | None = Field(None, ge=-1e18, le=1e18, exclude_if=lambda bound: bound is None)

    @model_validator(mode="after")
    def _one_place(self) -> FigureSource:
        if bool(self.pattern) == bool(self.json_path):
            raise ValueError("give a pattern or a json_path, one of the two")
        if self.pattern:
            compiled = regex.compile(self.pattern)
            if compiled.groups != 1 and "value" not in compiled.groupindex:
                raise ValueError("the pattern needs one group (...) around the number, or a group (?P<value>...)")
        _steps(self.json_path)
        if self.low is not None and self.high is not None and self.low >= self.high:
            raise ValueError("low is below high")
        return self

    def find_in_text(self, text: str, until_s: float) -> float | None:
        """The figure in the text, in its own unit times `scale`; None when nothing matches.

        `until_s` (of `time.process_time`) bounds the search. ParseError when what matches is no number.
        """
        compiled = regex.compile(self.pattern, regex.MULTILINE)
        group = "value" if "value" in compiled.groupindex else 1
        values: list[float] = []
        try:
            for match in compiled.finditer(text[:MAX_REPORT_CHARS], timeout=max(0.01, until_s - time.process_time())):
                found = match[group] or ""
                value = number_in(found)
                if value is None:
                    line = text.count("\n", 0, match.start()) + 1
                    raise ParseError(f"line {line}: '{found[:60]}' is not a number ({self.pattern})", line=line)
                values.append(value)
                if len(values) > MAX_MATCHES or time.process_time() > until_s:
                    raise TimeoutError
        except (TimeoutError, MemoryError):  # it keeps ways to go back to in at most 1 GiB
            raise ParseError(
                f"the pattern {self.pattern!r} takes longer than {SEARCH_S:g} s to look for", hint=SIMPLER, line=1
            ) from None
        return _PICKS[self.pick](values) * self.scale if values else None

    def find_in_json(self, document: JsonObject) -> float | None:
        """The figure at the path, in its own unit times `scale`; None when there is nothing.

        ParseError when it is no number.
        """
        value = document.at(_steps(self.json_path))
        if value is None:
            return None
        number = number_in(value)
        if number is None:
            raise ParseError(f"{self.json_path} is {str(value)[:60]!r}, which is not a number", line=1)
        return number * self.scale
