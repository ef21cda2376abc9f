"""What somebody typed into a form that was refused: kept for the page that comes next, and shown there once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.http import HttpRequest

KEPT_AS = "typed"
MOST_LETTERS = 500_000
"""Of all fields together: a table of timers fits, and the session stays a row of the database that can be read fast."""
NEVER_KEPT = ("csrfmiddlewaretoken", "password", "private_key", "secret")


@dataclass(frozen=True)
class Typed:
    """The fields of one form, and why it was refused. `all` has every value of a field, `value` the last one."""

    problem: str
    all: Mapping[str, list[str]]

    @property
    def value(self) -> Mapping[str, str]:
        return {name: values[-1] for name, values in self.all.items() if values}


def keep_typed(request: HttpRequest, problem: str) -> None:
    """Keep the fields of this POST for the form with its address."""
    fields = {name: request.POST.getlist(name) for name in request.POST if name not in NEVER_KEPT}
    if sum(len(name) + sum(map(len, values)) for name, values in fields.items()) <= MOST_LETTERS:
        request.session[KEPT_AS] = {"address": request.path, "problem": problem, "fields": fields}


def take_typed(request: HttpRequest, address: str) -> Typed | None:
    """What was refused at this address a moment ago; a second look finds nothing."""
    kept = request.session.get(KEPT_AS)
    if not kept or kept["address"] != address:
        return None
    del request.session[KEPT_AS]
    return Typed(kept["problem"], kept["fields"])
