"""The limits of the validity checks as a form. Ratios are entered in percent, as people say them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django import forms

from experiments.analysis.thresholds import Limit, Thresholds, limits
from experiments.judging.alerts.limits import EffectiveLimits

UNITS = {"ratio": "%", "s": "s", "factor": "times", "chance": "", "points": "points", "yes or no": ""}
_ABBREVIATIONS = {"cpu": "CPU", "sut": "SUT", "gc": "GC", "p": "p"}
_SHOWN_DIGITS = 6


@dataclass(frozen=True)
class Row:
    """One limit on the page: `default` and `bounds` in the unit in which it is entered."""

    limit: Limit
    title: str
    field: forms.BoundField
    unit: str
    default: str
    bounds: str
    changed: bool


class ThresholdsForm(forms.Form):
    """A field for each limit, the team's value in it; an empty one is the default."""

    def __init__(self, values: Thresholds, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._values = values
        for limit in limits():
            value = getattr(values, limit.name)
            if limit.unit == "yes or no":
                self.fields[limit.name] = forms.BooleanField(required=False, initial=value)
                continue
            widget = forms.NumberInput(attrs={"step": "any", "placeholder": f"{_entered(limit, limit.default):g}"})
            self.fields[limit.name] = forms.FloatField(
                required=False,
                min_value=_entered(limit, limit.low),
                max_value=_entered(limit, limit.high),
                initial=f"{_entered(limit, value):g}",
                widget=widget,
            )

    def changes(self) -> dict[str, float | None]:
        """What to store by name; None = the default."""
        return {
            limit.name: None if (given := self.cleaned_data[limit.name]) is None else _stored(limit, given)
            for limit in limits()
        }

    def rows(self) -> Iterator[Row]:
        for limit in limits():
            switch = limit.unit == "yes or no"
            yield Row(
                limit=limit,
                title=title_of(limit.name),
                field=self[limit.name],
                unit=UNITS[limit.unit],
                default="no" if switch else f"{_entered(limit, limit.default):g}",
                bounds="" if switch else f"{_entered(limit, limit.low):g} to {_entered(limit, limit.high):g}",
                changed=getattr(self._values, limit.name) != limit.default,
            )


def title_of(name: str) -> str:
    """`steal_warn_ratio` as a title: Steal warn."""
    words = name.removesuffix("_ratio").removesuffix("_s").split("_")
    return " ".join(_ABBREVIATIONS.get(word, word.capitalize() if i == 0 else word) for i, word in enumerate(words))


def _entered(limit: Limit, value: float) -> float:
    return round(value * 100, _SHOWN_DIGITS) if limit.unit == "ratio" else value


def _stored(limit: Limit, value: float) -> float:
    return round(value / 100, _SHOWN_DIGITS + 2) if limit.unit == "ratio" else value


class HistoryLimitsForm(forms.Form):
    """The limits of a part of the histories; an empty field is as in the wider part."""

    def __init__(self, found: EffectiveLimits, here: Mapping[str, Any], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._known = {limit.name: limit for limit in limits()}
        self._found = found
        for row in found.rows:
            limit, own = self._known[row.name], here.get(row.name)
            if limit.unit == "yes or no":
                choices = [("", "as in the wider part"), ("yes", "yes"), ("no", "no")]
                initial = "" if own is None else "yes" if own else "no"
                self.fields[row.name] = forms.ChoiceField(required=False, choices=choices, initial=initial)
                continue
            self.fields[row.name] = forms.FloatField(
                required=False,
                min_value=_entered(limit, limit.low),
                max_value=_entered(limit, limit.high),
                initial=None if own is None else f"{_entered(limit, own):g}",
                widget=forms.NumberInput(attrs={"step": "any", "placeholder": f"{_entered(limit, row.value):g}"}),
            )

    def changes(self) -> dict[str, float | bool | None]:
        """What to store by name; None = as in the wider part."""
        found: dict[str, float | bool | None] = {}
        for name, given in self.cleaned_data.items():
            if given in (None, ""):
                found[name] = None
            else:
                found[name] = given == "yes" if isinstance(given, str) else _stored(self._known[name], given)
        return found

    def rows(self) -> Iterator[tuple[Limit, str, forms.BoundField, str, str, str]]:
        """Limit, title, field, unit, the value that counts, and where it was set."""
        for row in self._found.rows:
            limit = self._known[row.name]
            counts = ("yes" if row.value else "no") if limit.unit == "yes or no" else f"{_entered(limit, row.value):g}"
            yield limit, title_of(row.name), self[row.name], UNITS[limit.unit], counts, row.origin
