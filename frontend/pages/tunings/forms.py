"""A tuning search as a form: what runs where, what may be tried of each parameter, and what is better."""

from __future__ import annotations

import re
from typing import Any, cast

from django import forms
from django.urls import reverse

from agents.steps.recipe import Parameter
from experiments.analysis.tuning.trials import FEWEST_RUNS
from experiments.asking.launching.choices import Choice
from experiments.asking.tunings.plan import MOST_HOURS, MOST_LIMITS, MOST_RUNS, NO_OBJECTIVE, LimitWanted, TuningPlan
from experiments.models import Host, Workload
from experiments.registry.errors import RequestError
from experiments.registry.metrics.vocabulary import label_of
from frontend.shared.forms.choices import TeamChoices
from frontend.shared.forms.fields import LabelsField, PriorityField
from frontend.shared.forms.parameters import EMPTY_TEXT, parameter_text
from frontend.shared.forms.parts import CHOICE_FIELDS, PartsForm

LIMIT_ROWS = 3
"""Rows for limits in an empty form; a search that is copied may have more."""
SAME = (
    "name",
    "metric",
    "budget_runs",
    "budget_hours",
    "reduces",
    "warm",
    "confirm_after_hours",
    "labels",
    "priority",
)
"""What form, plan and stored search call alike."""
SIDES = [("at_most", "at most"), ("at_least", "at least")]
_PART = re.compile(r'\s*"((?:[^"]|"")*)"\s*(?=[,#]|\Z)|[^,#]*')


class TuningForm(PartsForm):
    """One search. Of the parameter `x` the field `s_x` says that it is searched, `l_x` and `h_x` between which values,
    `g_x` by orders of magnitude, `c_x` which values only, `w_x` when it counts; `p_x` is what all is compared with."""

    name = forms.CharField(max_length=120, widget=forms.TextInput(attrs={"placeholder": "What makes it fast?"}))
    workload = forms.ModelChoiceField(Workload.objects.none(), empty_label="Choose…")
    metric = forms.ChoiceField(label="Better by")
    margin_pct = forms.FloatField(
        min_value=0.1, max_value=99, initial=3, label="Margin (%)", help_text="A smaller gain is not worth a change."
    )
    budget_runs = forms.IntegerField(
        min_value=FEWEST_RUNS,
        max_value=MOST_RUNS,
        initial=60,
        label="Runs at most",
        help_text="A quarter of them confirms the answer.",
    )
    budget_hours = forms.FloatField(
        required=False,
        min_value=0.01,
        max_value=MOST_HOURS,
        label="Hours at most",
        help_text="Of runs, not of waiting.",
    )
    forbidden = forms.CharField(
        required=False,
        max_length=20_000,
        label="Never together",
        help_text="One mixture a line: PARAMETER = VALUE, PARAMETER < VALUE, PARAMETER > OTHER, joined by and.",
        widget=forms.Textarea(
            attrs={"rows": 3, "spellcheck": "false", "placeholder": "workers > 4 and sendfile = off"}
        ),
    )
    starts = forms.CharField(
        required=False,
        max_length=20_000,
        label="Try first",
        help_text="One configuration a line: PARAMETER = VALUE, joined by commas, then # and where it is from. "
        'In quotation marks where a comma or # is in the value: "PARAMETER = A,B".',
        widget=forms.Textarea(
            attrs={
                "rows": 2,
                "spellcheck": "false",
                "placeholder": "workers = 4, sendfile = on # what we ran last year",
            }
        ),
    )
    reduces = forms.BooleanField(
        required=False,
        label="Find the smallest recipe, too",
        help_text="Each parameter of the answer goes back to its default alone; these runs come on top.",
    )
    further_suts = forms.ModelMultipleChoiceField(
        Host.objects.none(),
        required=False,
        label="Further servers",
        help_text="Equal to the SUT: the trials are divided among them, a finalist is measured on each.",
        widget=forms.SelectMultiple(attrs={"size": 3}),
    )
    confirm_sut = forms.ModelChoiceField(
        Host.objects.none(),
        required=False,
        empty_label="where it is searched",
        label="Confirm on",
        help_text="One more server, equal to the SUT.",
    )
    confirm_after_hours = forms.FloatField(
        required=False,
        min_value=0.01,
        max_value=MOST_HOURS,
        label="Hours until the confirmation",
        help_text="The search pauses so long before it, so that it is made on another day.",
    )
    warm = forms.BooleanField(
        required=False,
        initial=True,
        label="Begin with what earlier searches found",
        help_text="Answers of searches and experiments with this recipe are tried first, those of other hosts, too.",
    )
    labels = LabelsField(required=False, help_text="key=value, one per line; every trial gets them.")
    priority = PriorityField()

    def __init__(self, choices: TeamChoices, *args: Any, **kwargs: Any) -> None:
        super().__init__(choices, *args, **kwargs)
        self.fields["recipe"].widget.attrs["hx-get"] = reverse("tuning_parameters", args=[choices.team.slug])
        self.fields["application"].widget.attrs["hx-get"] = reverse("tuning_parameters", args=[choices.team.slug])
        for field in ("further_suts", "confirm_sut"):
            choices.fill(cast("forms.ModelChoiceField[Any]", self.fields[field]), "sut", *self._all_chosen(field))
        given = self.data if self.is_bound else self.initial
        rows = [n for n in range(1, MOST_LIMITS + 1) if n <= LIMIT_ROWS or f"limit{n}_metric" in given]
        chosen = [given.get(name, "") for name in ("metric", *(f"limit{n}_metric" for n in rows))]
        metrics = _metrics(choices, [name for name in chosen if name])
        objectives = [one for one in metrics if one[0] != NO_OBJECTIVE]
        cast("forms.ChoiceField", self.fields["metric"]).choices = objectives
        self.limits = range(1, rows[-1] + 1)
        for number in self.limits:
            self.fields[f"limit{number}_metric"] = forms.ChoiceField(
                required=False, choices=[("", "no limit"), *metrics], label=f"Limit {number}"
            )
            self.fields[f"limit{number}_side"] = forms.ChoiceField(required=False, choices=SIDES, label="is")
            self.fields[f"limit{number}_value"] = forms.FloatField(required=False, label="this value")
        for name, parameter in sorted(self.parameters.items()):
            self._add_search_fields(name, parameter)

    @property
    def search_rows(self) -> list[dict[str, Any]]:
        """Each parameter with its fields, for the template."""
        letters = {"searched": "s", "default": "p", "low": "l", "high": "h", "log": "g", "choices": "c", "when": "w"}
        return [
            {"name": name, "parameter": one}
            | {word: self[f"{letter}_{name}"] for word, letter in letters.items() if f"{letter}_{name}" in self.fields}
            for name, one in sorted(self.parameters.items())
        ]

    @property
    def limit_rows(self) -> list[list[forms.BoundField]]:
        return [[self[f"limit{number}_{part}"] for part in ("metric", "side", "value")] for number in self.limits]

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if self.parameters and not any(cleaned.get(f"s_{name}") for name in self.parameters):
            raise forms.ValidationError("Choose at least one parameter to search.")
        for number in self.limits:
            if cleaned.get(f"limit{number}_metric") and cleaned.get(f"limit{number}_value") is None:
                self.add_error(f"limit{number}_value", "Give the value of this limit.")
        return cleaned

    def plan(self) -> TuningPlan:
        """What the valid form says, its values still texts. RequestError when a start names no parameter."""
        cleaned = self.cleaned_data
        parts = {name: cleaned[name] for name in CHOICE_FIELDS}
        space: dict[str, Any] = {"parameters": [self._range(name) for name in self._in_order()]}
        space |= {
            "forbidden": self._lines("forbidden"),
            "starts": [self._start(line) for line in self._lines("starts")],
        }
        return TuningPlan(
            **{name: cleaned[name] for name in (*SAME, "further_suts", "confirm_sut")},
            choice=Choice(parameters=self.given(), members=self.members(), **parts),
            space=space,
            limits=[self._limit(number) for number in self.limits if cleaned[f"limit{number}_metric"]],
            margin_ratio=cleaned["margin_pct"] / 100,
        )

    def _add_search_fields(self, name: str, parameter: Parameter) -> None:
        self.fields[f"s_{name}"] = forms.BooleanField(required=False, label=f"Search {name}")
        self.fields[f"p_{name}"].label = "Compared with"
        if parameter.type in ("int", "float"):
            for letter, label, bound in (("l", "From", parameter.minimum), ("h", "To", parameter.maximum)):
                field = forms.FloatField(required=False, label=label)
                if bound is not None:
                    field.widget.attrs["placeholder"] = f"{bound:g}"
                self.fields[f"{letter}_{name}"] = field
            self.fields[f"g_{name}"] = forms.BooleanField(required=False, label="By orders of magnitude")
        if parameter.type != "bool":
            self.fields[f"c_{name}"] = forms.CharField(
                required=False,
                max_length=2000,
                label="Only these values",
                help_text='In quotation marks where a comma or # is in one: "A,B".' if parameter.type == "str" else "",
                widget=forms.TextInput(attrs={"placeholder": ", ".join(map(str, parameter.choices)) or "a, b, c"}),
            )
        self.fields[f"w_{name}"] = forms.CharField(
            required=False,
            max_length=400,
            label="Counts only when",
            widget=forms.TextInput(attrs={"placeholder": "other = value"}),
        )

    def _in_order(self) -> list[str]:
        """By name, but each after the one that its condition names. A circle has no order, and is refused later."""
        left = [name for name in sorted(self.parameters) if self.cleaned_data.get(f"s_{name}")]
        named = {name: (self.cleaned_data.get(f"w_{name}") or "").partition("=")[0].strip() for name in left}
        found: list[str] = []
        while left:
            following = next((name for name in left if named[name] not in left), left[0])
            left.remove(following)
            found.append(following)
        return found

    def _range(self, name: str) -> dict[str, Any]:
        cleaned = self.cleaned_data
        found: dict[str, Any] = {"name": name, "log": bool(cleaned.get(f"g_{name}"))}
        if cleaned.get(f"w_{name}"):
            found["only_when"] = cleaned[f"w_{name}"]
        if given := cleaned.get(f"c_{name}"):
            parts, behind = _parts(given)
            if behind:
                said = f"Put a value with # in it in quotation marks; {behind[:60]!r} would be left out."
                raise RequestError(said, field=f"space.{name}")
            found["choices"] = ["" if one.strip() == EMPTY_TEXT else one.strip() for one in parts]
        for letter, end in (("l", "low"), ("h", "high")):
            if cleaned.get(f"{letter}_{name}") is not None:
                found[end] = cleaned[f"{letter}_{name}"]
        return found

    def _lines(self, name: str) -> list[str]:
        return [line.strip() for line in self.cleaned_data[name].splitlines() if line.strip()]

    def _start(self, line: str) -> dict[str, Any]:
        parts, behind = _parts(line)
        config: dict[str, Any] = {}
        for part in filter(str.strip, parts):
            name, equals, value = (one.strip() for one in part.partition("="))
            if not equals or name not in self.parameters:
                said = f"{part.strip()[:60]!r} is not PARAMETER = VALUE of a parameter of the recipe."
                raise RequestError(said, field="space.starts")
            if name in config:
                raise RequestError(f"{name} is given twice in one configuration.", field="space.starts")
            config[name] = "" if value == EMPTY_TEXT else value
        return {"config": config, "why": behind.removeprefix("#").strip()}

    def _limit(self, number: int) -> LimitWanted:
        metric, side, value = (self.cleaned_data[f"limit{number}_{part}"] for part in ("metric", "side", "value"))
        return LimitWanted(metric, **{side or "at_most": value})


def _metrics(choices: TeamChoices, chosen: list[str]) -> list[Any]:
    """What may be chosen, figures of the members of systems behind all else. What is chosen already stays among them:
    whether runs of the application have it is looked at when the search starts.
    """
    known, of_members = choices.metrics(), choices.metrics_of_members()
    there = dict([*known, *of_members])
    other = [(name, label_of(name)) for name in dict.fromkeys(chosen) if name not in there]
    return [*known, *([("Of a system's members", of_members)] if of_members else []), *other]


def initial_of(space: dict[str, Any]) -> dict[str, Any]:
    """What the form shows of a stored space."""
    own = [one for one in space.get("starts", ()) if not one.get("known")]
    found: dict[str, Any] = {"forbidden": "\n".join(space.get("forbidden", ())), "starts": "\n".join(map(_line, own))}
    for one in space["parameters"]:
        name = one["name"]
        found |= {f"s_{name}": True, f"g_{name}": one.get("log"), f"w_{name}": one.get("only_when", "")}
        found |= {f"l_{name}": _end(one.get("low")), f"h_{name}": _end(one.get("high"))}
        found[f"c_{name}"] = ", ".join(_quoted(parameter_text(value)) for value in one.get("choices", ()))
    return found


def _line(start: dict[str, Any]) -> str:
    """A start as a person writes it, and `_parts` reads it."""
    config = ", ".join(_quoted(f"{name} = {parameter_text(value)}") for name, value in start["config"].items())
    return f"{config} # {' '.join(start['why'].split())}" if start.get("why") else config


def _quoted(part: str) -> str:
    return '"{}"'.format(part.replace('"', '""')) if part[:1] == '"' or {",", "#"} & {*part} else part


def _parts(line: str) -> tuple[list[str], str]:
    """What the commas of a start part, and what is behind it, from its # on.

    In quotation marks a part is taken as it is, and a quotation mark in it is written twice, as in a list of runs.
    """
    found: list[str] = []
    at = -1
    while at < 0 or line[at : at + 1] == ",":
        match = cast("re.Match[str]", _PART.match(line, at + 1))
        found.append(match[0] if match[1] is None else match[1].replace('""', '"'))
        at = match.end()
    return found, line[at:]


def _end(value: float | None) -> float | int | None:
    """A whole number without its decimals."""
    return int(value) if value is not None and value == int(value) else value
