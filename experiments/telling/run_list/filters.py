"""What runs are wanted: read from a query string, and as a database query."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q, Value

from experiments.models import Application, DriverSet, Host, Recipe, Run, Team, Workload
from experiments.models.runs import RunQuerySet
from experiments.registry.errors import RequestError
from experiments.telling.run_list.conditions import Condition, parse_time, read_conditions
from experiments.telling.run_list.pairs import items_of
from experiments.telling.run_list.words import HasWords, parts_of

MAX_QUERY_CHARS = 500
MAX_WORDS = 10
_CHOICES = {"state": Run.State.values, "outcome": Run.Outcome.values, "validity": Run.Validity.values}
_NAMES = ("recipe", "workload", "application", "sut", "driver")
_PARAMETER = "param."
"""In the query box, `param.heap:4g` is a parameter and `heap:4g` a label."""
_NUMBER = re.compile(r"#?([0-9]{1,9})")


@dataclass(frozen=True)
class RunFilter:
    """Every filled field narrows the list. `label` and `param`, the parameters that were chosen, must all be there.

    `query` is the text of the one query box.
    """

    query: str = ""
    state: str = ""
    outcome: str = ""
    validity: str = ""
    recipe: str = ""
    workload: str = ""
    application: str = ""
    sut: str = ""
    driver: str = ""
    tag: str = ""
    label: tuple[tuple[str, str], ...] = ()
    param: tuple[tuple[str, str], ...] = ()
    experiment: int | None = None
    since: datetime | None = None
    until: datetime | None = None
    archived: bool = False
    conditions: tuple[Condition, ...] = ()

    @classmethod
    def from_query(
        cls, given: Mapping[str, str], *, label: Sequence[str] | None = None, param: Sequence[str] | None = None
    ) -> RunFilter:
        """The filter in a query string; unknown keys are left alone, bad values are a RequestError naming the field.

        `label` and `param` are each `k=v`, and what is in it is the value. Where they are left out, each is a field of
        a page in `given`, which holds several (`experiments.telling.run_list.pairs`).
        """
        text = {name: str(given.get(name, "")).strip() for name in _TEXTS}
        for name, value in text.items():
            if len(value) > MAX_QUERY_CHARS or "\0" in value:
                raise RequestError(f"{name} has at most {MAX_QUERY_CHARS} characters.", field=name)
        for name, choices in _CHOICES.items():
            for field, asked in ((name, [text[name]]), (f"{name}__in", str(given.get(f"{name}__in", "")).split(","))):
                unknown = [one.strip() for one in asked if one.strip() not in ("", *choices)]
                if unknown:
                    known = ", ".join(value for value in choices if value)
                    raise RequestError(f"There is no {name} {unknown[0][:60]!r}; known: {known}.", field=field)
        experiment = str(given.get("experiment", "")).strip()
        if experiment and not re.fullmatch(r"[0-9]{1,18}", experiment):
            raise RequestError("An experiment is named by its number.", field="experiment")
        return cls(
            **text,
            label=_pairs(items_of(given.get("label", "")) if label is None else label, "label", "label"),
            param=_pairs(items_of(given.get("param", "")) if param is None else param, "param", "parameter"),
            experiment=int(experiment) if experiment else None,
            since=_time(given, "since"),
            until=_time(given, "until"),
            archived=str(given.get("archived", "")).lower() in {"1", "true", "yes", "on"},
            conditions=read_conditions(given),
        )


_TEXTS = ("query", "state", "outcome", "validity", *_NAMES, "tag")


def matching(team: Team, wanted: RunFilter, among: RunQuerySet | None = None) -> RunQuerySet:
    """The team's runs that fit, not sorted; `among` says what is read of them."""
    every: RunQuerySet = Run.objects.all() if among is None else among
    exact = {name: getattr(wanted, name) for name in _CHOICES if getattr(wanted, name)}
    runs: RunQuerySet = every.for_team(team).filter(archived=wanted.archived, **exact)
    for name in _NAMES:
        if value := getattr(wanted, name):
            runs = runs.filter(_where(_name_of(name), value))
    if wanted.tag:
        runs = runs.filter(tags__contains=[wanted.tag])
    for key, value in wanted.label:
        runs = runs.filter(labels__contains={key: value})
    for key, value in wanted.param:
        runs = runs.filter(parameters__contains={key: value})
    if wanted.experiment is not None:
        runs = runs.filter(experiment_id=wanted.experiment)
    if wanted.since:
        runs = runs.filter(queued_at__gte=wanted.since)
    if wanted.until:
        runs = runs.filter(queued_at__lt=wanted.until)
    for condition in wanted.conditions:
        runs = runs.filter(_where(condition.lookup, condition.value))
    for word in wanted.query.split()[:MAX_WORDS]:
        runs = _with_word(team, runs, word)
    return runs


def _name_of(part: str) -> str:
    """The path from a run to the name of a part of it."""
    return "drivers__hosts__name" if part == "driver" else f"{part}__name"


def _where(lookup: str, value: Any) -> Q:
    """A condition on the run. One on its driver hosts is asked of their sets, so that no run comes twice."""
    if lookup.startswith("drivers__"):
        return Q(drivers__in=DriverSet.objects.filter(**{lookup.removeprefix("drivers__"): value}))
    return Q(**{lookup: value})


def _with_word(team: Team, runs: RunQuerySet, word: str) -> RunQuerySet:
    if number := _NUMBER.fullmatch(word):
        return runs.filter(number=int(number[1]))
    key, colon, value = word.partition(":")
    if colon and value:
        if key in _CHOICES:
            return runs.filter(**{key: value})
        if key in _NAMES:
            return runs.filter(_where(f"{_name_of(key)}__icontains", value))
        if key == "tag":
            return runs.filter(tags__contains=[value])
        if key.startswith(_PARAMETER):
            return runs.filter(parameters__contains={key.removeprefix(_PARAMETER): value})
        return runs.filter(labels__contains={key: value})
    # Names are few, so the word is looked up there first; the runs are then found by their indexed ids.
    found = Q()
    for name, choices in _CHOICES.items():
        if word in choices:
            found |= Q(**{name: word})
    for column, ids in _named(team, word).items():
        found |= Q(**{f"{column}_id__in": ids})
    if parts := parts_of(word):
        found |= Q(HasWords(parts))
    return runs.filter(found) if found else runs.none()


def _named(team: Team, word: str) -> dict[str, list[int]]:
    """The ids of what has the word in its name, by the column of a run that refers to it. One query."""
    models = {"recipe": Recipe, "workload": Workload, "application": Application, "sut": Host}
    queries = [
        model._default_manager.filter(team=team, name__icontains=word).values_list(Value(column), "pk")
        for column, model in models.items()
    ]
    found: dict[str, list[int]] = {}
    for column, pk in queries[0].union(*queries[1:], all=True):
        found.setdefault(column, []).append(pk)
    return found


def _pairs(items: Sequence[str], field: str, noun: str) -> tuple[tuple[str, str], ...]:
    found = []
    for item in filter(None, (item.strip() for item in items)):
        key, equals, value = item.partition("=")
        if "\0" in item:
            raise RequestError(f"A {noun} holds no NUL character.", field=field)
        if not equals or not key:
            raise RequestError(f"A {noun} filter reads key=value.", field=field)
        found.append((key, value))
    return tuple(found)


def _time(given: Mapping[str, str], name: str) -> datetime | None:
    text = str(given.get(name, "")).strip()
    return parse_time(text, name) if text else None
