"""What a team has whose name, or number, fits what was typed. A fixed number of queries, each with a limit."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from django.db.models import Q

from experiments.models import Application, Experiment, Host, Recipe, Run, Series, Team, Workload
from experiments.models.documents import Document
from experiments.registry.errors import RequestError
from experiments.telling.run_list.listing import RunFilter, runs_page

MAX_TEXT = 200
MAX_FOUND = 8
"""Of each kind; the list of that kind has the rest."""

_NUMBER = re.compile(r"#?([0-9]{1,9})")


@dataclass(frozen=True)
class Found:
    """What fits, best first within each kind. `exact`: the run whose number was typed."""

    exact: Run | None = None
    runs: tuple[Run, ...] = ()
    more_runs: bool = False
    experiments: tuple[Experiment, ...] = ()
    hosts: tuple[Host, ...] = ()
    documents: dict[str, tuple[Document, ...]] = field(default_factory=dict)
    series: tuple[Series, ...] = ()

    @property
    def nothing(self) -> bool:
        return not (self.runs or self.experiments or self.hosts or self.series or any(self.documents.values()))


def look_up(team: Team, text: str) -> Found:
    """Runs by number, label, tag and the names of what they are made of; everything else by its name."""
    words = text.split()
    if len(text) > MAX_TEXT or "\0" in text:
        raise RequestError(f"Search for at most {MAX_TEXT} characters.", field="q")
    if not words:
        return Found()
    number = _NUMBER.fullmatch(text.strip())
    page = runs_page(team, RunFilter(query=text), limit=MAX_FOUND)
    exact = page.rows[0] if number and page.rows else None
    experiments = Experiment.objects.for_team(team).filter(_each(words, "name", "question")).order_by("-pk")
    hosts = Host.objects.for_team(team).filter(_each(words, "name", "address")).order_by("name")
    series = Series.objects.for_team(team).filter(_each(words, "application", "workload", "tool"))
    return Found(
        exact=exact,
        runs=page.rows,
        more_runs=bool(page.next_cursor),
        experiments=tuple(experiments[:MAX_FOUND]),
        hosts=tuple(hosts.defer("private_key")[:MAX_FOUND]),
        documents={
            name: _documents(model, team, words)
            for name, model in (("recipes", Recipe), ("workloads", Workload), ("applications", Application))
        },
        series=tuple(series.select_related("sut_profile", "last_run").order_by("-last_run_id")[:MAX_FOUND]),
    )


def _documents(model: type[Document], team: Team, words: list[str]) -> tuple[Document, ...]:
    """The newest version of each one that fits."""
    newest = model.objects.for_team(team).newest_versions()
    return tuple(newest.filter(_each(words, "name")).defer("body")[:MAX_FOUND])


def _each(words: list[str], *fields: str) -> Q:
    """Every word stands in one of the fields, in whatever case."""
    wanted = Q()
    for word in words:
        one = Q()
        for name in fields:
            one |= Q(**{f"{name}__icontains": word})
        wanted &= one
    return wanted
