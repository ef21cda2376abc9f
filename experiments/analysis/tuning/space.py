"""What may be tried: parameters with their ranges, conditions and forbidden combinations (docs/tuning.md)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Value = bool | int | float | str
Config = Mapping[str, Value]
Key = tuple[Value | None, ...]
Floats = NDArray[np.float64]

Kind = Literal["switch", "choice", "integer", "number"]
Relation = Literal["is", "below", "above"]

TWO_CHOICES = "give two choices or more; what has one value only, give it as the fixed parameter instead"


@dataclass(frozen=True)
class Condition:
    """A parameter counts only while `parameter` has one of `values`."""

    parameter: str
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Parameter:
    """One thing that may change.

    `choices` of a switch or choice have no order; an integer or number with choices may be these only, in their order.
    Without choices it lies from `low` to `high`, both allowed; `log` searches its orders of magnitude.
    """

    name: str
    kind: Kind
    choices: tuple[Value, ...] = ()
    low: float = 0.0
    high: float = 1.0
    log: bool = False
    only_when: Condition | None = None

    def __post_init__(self) -> None:
        if self.kind in ("switch", "choice") and len(self.choices) < 2:
            raise ValueError(f"{self.name}: {TWO_CHOICES}")
        if len(set(self.choices)) < len(self.choices):
            raise ValueError(f"{self.name}: a choice is given twice")
        if not self.choices and not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise ValueError(f"{self.name}: the range is {self.low} to {self.high}; low must be smaller than high")
        if self.log and not self.choices and self.low <= 0:
            raise ValueError(f"{self.name}: a logarithmic range begins above 0, not at {self.low}")

    @property
    def is_ordered(self) -> bool:
        """Whether neighbouring values are alike."""
        return self.kind in ("integer", "number") or len(self.choices) == 2

    def allows(self, value: Value) -> bool:
        """Whether this is one of the choices, or lies in the range."""
        if self.choices:
            return value in self.choices
        if isinstance(value, str | bool) or not math.isfinite(value):
            return False
        return self.low <= value <= self.high and (self.kind == "number" or float(value).is_integer())

    def position(self, value: Value) -> float:
        """Where an ordered value lies, as a fraction of the range from 0 to 1; for unordered choices its number.

        A single choice lies in the middle. ValueError: a range has no place for a text.
        """
        if self.choices:
            index = self.choices.index(value)
            if not self.is_ordered:
                return float(index)
            return index / (len(self.choices) - 1) if len(self.choices) > 1 else 0.5
        if isinstance(value, str):
            raise ValueError(f"{self.name}: {value!r} is no number")
        if self.log:
            return math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def at(self, fraction: float) -> Value:
        """The value at this fraction of the range, 0 to 1: the inverse of `position`, for choices by equal shares."""
        if self.choices:
            return self.choices[min(int(fraction * len(self.choices)), len(self.choices) - 1)]
        if self.log:
            value = self.low * math.exp(fraction * math.log(self.high / self.low))
        else:
            value = self.low + fraction * (self.high - self.low)
        value = min(max(value, self.low), self.high)
        return round(value) if self.kind == "integer" else value


@dataclass(frozen=True)
class Clause:
    """A parameter compared with a value, or with the value of another parameter."""

    parameter: str
    relation: Relation
    value: Value | None = None
    other: str | None = None

    def holds(self, config: Config) -> bool:
        mine, theirs = config[self.parameter], config[self.other] if self.other else self.value
        if self.relation == "is" or isinstance(mine, str) or isinstance(theirs, str) or theirs is None:
            return self.relation == "is" and mine == theirs
        return mine < theirs if self.relation == "below" else mine > theirs

    def names(self) -> tuple[str, ...]:
        """The parameters that it speaks of."""
        return (self.parameter, self.other) if self.other else (self.parameter,)


@dataclass(frozen=True)
class Space:
    """All parameters. A configuration is forbidden when every clause of one of `forbidden` holds."""

    parameters: tuple[Parameter, ...]
    forbidden: tuple[tuple[Clause, ...], ...] = ()

    def __post_init__(self) -> None:
        names = [one.name for one in self.parameters]
        if not names or len(set(names)) < len(names):
            raise ValueError("a space needs parameters, each with a name of its own")
        for position, one in enumerate(self.parameters):
            if one.only_when and one.only_when.parameter not in names[:position]:
                raise ValueError(f"{one.name}: its condition must name a parameter that stands before it")
        for clause in (clause for clauses in self.forbidden for clause in clauses):
            if unknown := set(clause.names()) - set(names):
                raise ValueError(f"forbidden: there is no parameter {min(unknown)}")

    def active(self, config: Config) -> tuple[bool, ...]:
        """For each parameter, whether it counts in this configuration."""
        found: dict[str, bool] = {}
        for one in self.parameters:
            when = one.only_when
            found[one.name] = when is None or (found[when.parameter] and config[when.parameter] in when.values)
        return tuple(found.values())

    def key(self, config: Config) -> Key:
        """Equal for configurations that are the same thing: parameters that do not count are left out."""
        active = self.active(config)
        return tuple(config[one.name] if on else None for one, on in zip(self.parameters, active, strict=True))

    def settled(self, config: Config, default: Config) -> dict[str, Value]:
        """The same thing, with the default's value where a parameter does not count: nobody chose another one."""
        active = self.active(config)
        return {
            one.name: config[one.name] if on else default[one.name]
            for one, on in zip(self.parameters, active, strict=True)
        }

    def is_forbidden(self, config: Config) -> bool:
        """Whether all clauses of a mixture hold. One that speaks of a parameter that does not count never holds."""
        return self._mixture_in(config) is not None

    def _mixture_in(self, config: Config) -> tuple[Clause, ...] | None:
        if not self.forbidden:
            return None
        counts = dict(zip((one.name for one in self.parameters), self.active(config), strict=True))
        for clauses in self.forbidden:
            if all(all(counts[name] for name in one.names()) and one.holds(config) for one in clauses):
                return clauses
        return None

    def check(self, config: Config) -> None:
        """Raises ValueError, naming the parameter, when this configuration must not be applied."""
        for one in self.parameters:
            if one.name not in config:
                raise ValueError(f"{one.name}: it has no value")
            if not one.allows(config[one.name]):
                raise ValueError(f"{one.name}: {config[one.name]!r} is outside of what may be tried")
        if unknown := set(config) - {one.name for one in self.parameters}:
            raise ValueError(f"{min(unknown)}: there is no such parameter")
        if clauses := self._mixture_in(config):
            raise ValueError(f"{clauses[0].parameter}: this combination is forbidden")

    def at(self, fractions: Sequence[float] | Floats) -> dict[str, Value]:
        """The configuration at these fractions of the ranges, one for each parameter in order."""
        return {one.name: one.at(float(u)) for one, u in zip(self.parameters, fractions, strict=True)}

    def positions(self, configs: Sequence[Config]) -> Floats:
        """One row for each configuration, one column for each parameter: positions as fractions, or choice numbers.

        A parameter that does not count stands in the middle, or at choice -1: alike wherever it does not count.
        """
        rows = np.empty((len(configs), len(self.parameters)))
        for row, config in zip(rows, configs, strict=True):
            for column, (one, on) in enumerate(zip(self.parameters, self.active(config), strict=True)):
                row[column] = one.position(config[one.name]) if on else 0.5 if one.is_ordered else -1.0
        return rows
