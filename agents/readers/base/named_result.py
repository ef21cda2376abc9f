"""Named results: what a file with many benchmarks says of each of them.

A figure's name ends with its unit (`latency_p99_ms`, `iops`, `bytes_per_s`); None says that the file does not tell it,
which is never the same as 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Figures = Mapping[str, object]
"""Figure -> a number, None, a text such as a unit, or a mapping (status code -> count)."""

MAX_VALUES = 60
"""How many single values of repetitions `to_json` gives; the whole list is in `Repetitions.values`."""


@dataclass(frozen=True)
class Repetitions:
    """The independent values behind a figure, in the unit of its name.

    `of`: what one of them is (fork, run, round, repetition, sample, count). `values`: figure -> one value for each,
    empty where the file has only how many there were. `figure`: the only one of `values`, "" where there are several.
    `iterations_each`: iterations inside a repetition, which are none themselves.
    """

    of: str
    count: int
    figure: str = ""
    values: Mapping[str, Sequence[float]] = field(default_factory=dict)
    iterations_each: Sequence[int] | int | None = None
    values_sum_s: float | None = None

    def to_json(self) -> dict[str, object]:
        """As it is printed: at most 60 values, null where there are more or none."""
        out: dict[str, object] = {"of": self.of, "count": self.count}
        shown = {name: list(values) if len(values) <= MAX_VALUES else None for name, values in self.values.items()}
        if self.figure:
            out |= {"figure": self.figure, "values": shown.get(self.figure)}
        else:
            out["values"] = shown or None
        if self.values_sum_s is not None:
            out["values_sum_s"] = self.values_sum_s
        if self.iterations_each is not None:
            each = self.iterations_each
            out["iterations_each"] = each if isinstance(each, int) else list(each)
        return out


@dataclass(frozen=True)
class Measure:
    """A figure that has a name of the file's own. `direction` and `unit` are None where nobody but its owner knows."""

    value: float
    unit: str | None = None
    direction: Literal["bigger is better", "smaller is better"] | None = None
    more: Mapping[str, object] = field(default_factory=dict)

    def to_json(self) -> dict[str, object]:
        """As it is printed."""
        return {"value": self.value, **self.more, "unit": self.unit, "direction": self.direction}


@dataclass(frozen=True)
class NamedResult:
    """One benchmark of a file. `params` tells it from its neighbours, `basis` what latency counts from.

    `benchmark` None: the file does not name it. `why`: why it must not enter a comparison; "" where it may.
    """

    benchmark: str | None
    figures: Figures
    params: Mapping[str, object] = field(default_factory=dict)
    repetitions: Repetitions | None = None
    measures: Mapping[str, Measure] = field(default_factory=dict)
    basis: str = ""
    why: str = ""
    optional: bool = False
    more: Mapping[str, object] = field(default_factory=dict)

    def to_json(self) -> dict[str, object]:
        """As it is printed."""
        out: dict[str, object] = {
            "benchmark": self.benchmark,
            "params": dict(self.params),
            "figures": dict(self.figures),
            **self.more,
        }
        if self.repetitions is not None:
            out["repetitions"] = self.repetitions.to_json()
        if self.measures:
            out["measures"] = {name: measure.to_json() for name, measure in self.measures.items()}
        if self.basis:
            out["basis"] = self.basis
        if self.why:
            out |= {"usable": False, "why": self.why}
        if self.optional:
            out["optional"] = True
        return out


@dataclass(frozen=True)
class Readout:
    """What a file says. `beside`: what it says of the whole, such as errors. `why`: why no result counts."""

    tool: str
    format: str
    results: tuple[NamedResult, ...]
    tool_version: str | None = None
    beside: Mapping[str, object] = field(default_factory=dict)
    why: str = ""

    def to_json(self) -> dict[str, object]:
        """As `manage.py parse` prints it."""
        out: dict[str, object] = {
            "tool": self.tool,
            "format": self.format,
            "tool_version": self.tool_version,
            "results": [one.to_json() for one in self.results],
            **self.beside,
        }
        if self.why:
            out |= {"usable": False, "why": self.why}
        return out
