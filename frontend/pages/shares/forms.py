"""What to share, and for how long."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, cast

from django import forms

from experiments.models import Member, Role, ShareLink
from experiments.registry.errors import RequestError
from experiments.telling.run_list.conditions import parse_time
from experiments.telling.sharing.links import DEFAULT_DAYS
from experiments.telling.sharing.subjects import Subject
from frontend.shared.query import id_in

NEVER = "never"
MOST_RUNS = 20
_EXPIRIES = {"1": "in 1 day", "7": "in 7 days", "30": "in 30 days", "90": "in 90 days", "366": "in a year"}


class ShareForm(forms.Form):
    """How long the link is to work; what it shows comes from the page that the person was on."""

    days = forms.ChoiceField(label="It expires", initial=str(DEFAULT_DAYS))

    def __init__(self, member: Member, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = cast(forms.ChoiceField, self.fields["days"])
        field.choices = list(_EXPIRIES.items())
        if member.role == Role.ADMIN:
            field.choices = [*_EXPIRIES.items(), (NEVER, "never")]

    def chosen_days(self) -> int | None:
        """None = never."""
        chosen = self.cleaned_data["days"]
        return None if chosen == NEVER else int(chosen)


def subject_in(given: Any) -> Subject:
    """The subject that a query string names. RequestError says which part of it is wrong."""
    kind = given.get("kind", "")
    if kind not in ShareLink.Kind.values:
        raise RequestError("Share something from its own page: a run, a comparison, a trend.", field="kind")
    words = [word.strip().lstrip("#") for word in given.get("runs", "").split(",") if word.strip()]
    numbers = [id_in(word) for word in words[:MOST_RUNS]]
    if any(number is None or number >= 2**31 for number in numbers):
        raise RequestError("That is no run number.", field="runs")
    days = id_in(given.get("range", ""))
    return Subject(
        kind=ShareLink.Kind(kind),
        runs=tuple(number for number in numbers if number is not None),
        experiment_id=id_in(given.get("experiment", "")),
        inquiry_id=id_in(given.get("search", "") or given.get("bisection", "")),
        series_id=id_in(given.get("series", "")),
        metric=given.get("metric", "throughput_rps"),
        recipe=given.get("recipe", ""),
        since=_time(given, "from") or (datetime.now(UTC) - timedelta(days=days) if days and days <= 3660 else None),
        until=_time(given, "to"),
    )


def _time(given: Any, name: str) -> datetime | None:
    """An end of the range that a chart was zoomed to."""
    return parse_time(given[name], name) if given.get(name) else None
