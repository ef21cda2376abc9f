"""The list of runs: everything that it shows is in its URL, so that a link is the view and the CSV is what one sees."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Value
from django.http import HttpResponse, HttpResponseBase, QueryDict
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from experiments.judging.comparing.changes import ThroughputChange, throughput_changes
from experiments.models import Application, Host, Recipe, Role, Run, StoredVerdict, Team, Workload
from experiments.registry.errors import RequestError
from experiments.registry.metrics.vocabulary import METRICS
from experiments.running.queue.plan import Expected
from experiments.running.queue.waiting import schedule_up_to
from experiments.telling.run_list.csv_response import CsvResponse
from experiments.telling.run_list.listing import SORTS, RunFilter, csv_rows, runs_page
from experiments.telling.run_list.pairs import join_pairs
from experiments.telling.run_list.saved_views import PASSING, views_of
from frontend.pages.runs.columns import COLUMNS, Column, chosen_columns
from frontend.shared.access import TeamRequest, team_view
from frontend.shared.baseline import tone_of

ROWS = 50
ONLY_WIDE = ("verdict", "what", "drivers", "by")
"""Columns that a narrow screen leaves out."""
KEPT = ("state", "validity", "outcome", "archived", "experiment", "sort", "view")
"""What stands in the URL without a field of its own in the filter form."""

_TYPED = ("query", "recipe", "workload", "application", "sut", "driver", "tag", "label", "param", "since", "until")
FILTERS = (*KEPT[:-2], *_TYPED)
QUICK: tuple[tuple[str, dict[str, str]], ...] = (
    ("All", {}),
    ("Queued", {"state": "queued"}),
    ("Measuring", {"state": "measuring"}),
    ("Valid", {"validity": "valid"}),
    ("Suspect", {"validity": "suspect"}),
    ("Invalid", {"validity": "invalid"}),
    ("Failed", {"outcome": "failed"}),
    ("Archived", {"archived": "1"}),
)


EVERY_RUN = "view=all"
"""The address of every run; without anything in it, it would open the member's default view."""


@dataclass(frozen=True)
class Chip:
    """A filter chip: `query` is the URL with it switched on, or off when it is `current`."""

    label: str
    query: str
    current: bool


@dataclass(frozen=True)
class Heading:
    """A column's head; `query` is the URL that sorts by it, "" where it cannot."""

    column: Column
    query: str
    direction: str

    @property
    def classes(self) -> str:
        """How it looks: figures stand to the right, and some columns are left out on a narrow screen."""
        looks = {"num": self.column.numeric, "sorted": self.direction, "only-wide": self.column.name in ONLY_WIDE}
        return " ".join(name for name, holds in looks.items() if holds)


@require_safe
@team_view()
def run_list(request: TeamRequest) -> HttpResponseBase:
    """Fifty runs of the filter. The number of queries does not grow with the rows."""
    opened_with = request.member.default_view
    if opened_with is not None and not request.GET and not request.headers.get("HX-Request"):
        return redirect(f"{request.path}?{opened_with.query}{'&' * bool(opened_with.query)}view={opened_with.pk}")
    given = _given(request.GET)
    columns = chosen_columns(given.getlist("columns"))
    problem = None
    try:
        page = runs_page(
            request.team,
            RunFilter.from_query(_first(given)),
            sort=given.get("sort", "-number"),
            cursor=given.get("cursor", ""),
            limit=ROWS,
        )
        rows, older, newer = page.rows, page.next_cursor, page.previous_cursor
    except RequestError as error:
        rows, older, newer, problem = (), "", "", error
    context = {
        "rows": rows,
        "verdicts": _verdicts(rows) if "verdict" in {column.name for column in columns} else {},
        "changes": _changes(request.team, rows) if "change" in {column.name for column in columns} else {},
        "expected": _expected(request.team, rows),
        "problem": problem,
        "given": given,
        "columns": columns,
        "all_columns": COLUMNS,
        "chosen": {column.name for column in columns},
        "headings": [_heading(given, column) for column in columns],
        "quick": _quick(given),
        "active": _active(given),
        "options": _options(request.team),
        "older_query": _with(given, cursor=older) if older else "",
        "newer_query": _with(given, cursor=newer) if newer else "",
        "csv_query": _with(given, cursor=None),
        "kept": [(name, given[name]) for name in KEPT if given.get(name)],
        "filtered": any(given.get(name) for name in FILTERS),
        **_views(request, given),
    }
    shown_as_fragment = bool(request.headers.get("HX-Request"))
    page_status = 422 if problem and not shown_as_fragment else 200
    response = render(request, "runs/list.html", context, status=page_status)
    if shown_as_fragment:
        # The form sends every field; the address keeps only those that say something.
        response["HX-Push-Url"] = f"{request.path}?{given.urlencode() or EVERY_RUN}"
    return response


@require_safe
@team_view()
def run_csv(request: TeamRequest) -> HttpResponseBase:
    """The view as CSV: the same filter, order and columns, every row."""
    given = _given(request.GET)
    names = [name for column in chosen_columns(given.getlist("columns")) for name in column.csv]
    try:
        lines = csv_rows(request.team, RunFilter.from_query(_first(given)), given.get("sort", "-number"), names)
    except RequestError as error:
        return HttpResponse(error.message, status=422, content_type="text/plain; charset=utf-8")
    return CsvResponse(lines, filename="runs.csv")


def _given(query: QueryDict) -> QueryDict:
    """The query string without empty values; the search box on top calls it `q`."""
    given = QueryDict(mutable=True)
    for name, values in query.lists():
        if kept := [value for value in values if value.strip()]:
            given.setlist("query" if name == "q" else name, kept)
    join_pairs(given)
    if chosen_columns(given.getlist("columns")) == chosen_columns(()):
        given.pop("columns", None)
    return given


def _first(given: QueryDict) -> dict[str, str]:
    return {name: str(given[name]) for name in given}


def _with(given: QueryDict, **changes: str | None) -> str:
    """The query string with some values changed; None takes one out. Changing the view begins at its first page."""
    changed = given.copy()
    changed.pop("cursor", None)
    for name, value in changes.items():
        if value:
            changed[name] = value
        else:
            changed.pop(name, None)
    return changed.urlencode() or EVERY_RUN


def _views(request: TeamRequest, given: QueryDict) -> dict[str, Any]:
    """The saved views, which of them is shown, and whether it has been changed since."""
    views = views_of(request.member)
    current = next((view for view in views if str(view.pk) == given.get("view")), None)
    here = given.copy()
    for name in PASSING:
        here.pop(name, None)
    shown = here.urlencode()
    return {
        "views": views,
        "view": current,
        "view_changed": current is not None and QueryDict(current.query) != QueryDict(shown),
        "may_change_view": current is not None
        and (current.owner_id == request.user.pk or request.member.role == Role.ADMIN),
        "view_query": shown,
        "here": given.urlencode(),
    }


def _quick(given: QueryDict) -> list[Chip]:
    names = {name for _, values in QUICK for name in values}
    now = {name: given[name] for name in names if given.get(name)}
    off: dict[str, str | None] = dict.fromkeys(names)
    return [Chip(label, _with(given, **(off | values)), current=now == values) for label, values in QUICK]


def _active(given: QueryDict) -> list[Chip]:
    """One chip per filter that is on and stands in no quick chip; its link takes it off."""
    quick = {name for _, values in QUICK for name in values} | {"query"}
    shown = [name for name in FILTERS if given.get(name) and name not in quick]
    return [Chip(f"{name}: {given[name]}", _with(given, **{name: None}), current=True) for name in shown]


def _heading(given: QueryDict, column: Column) -> Heading:
    sort = given.get("sort", "-number")
    if column.sort not in SORTS:
        return Heading(column, "", "")
    direction = {column.sort: "ascending", f"-{column.sort}": "descending"}.get(sort, "")
    first = column.sort if column.name == "latency_p99_ms" else f"-{column.sort}"
    other = column.sort if first.startswith("-") else f"-{column.sort}"
    return Heading(column, _with(given, sort=other if sort == first else first), direction)


def _options(team: Team) -> dict[str, list[str]]:
    """The names that the filter offers, in one query."""
    models: dict[str, type[Any]] = {"recipe": Recipe, "workload": Workload, "application": Application}
    named = [
        model.objects.for_team(team).annotate(kind=Value(kind), role=Value("")).values_list("kind", "name", "role")
        for kind, model in models.items()
    ]
    hosts = Host.objects.for_team(team).annotate(kind=Value("host")).values_list("kind", "name", "roles")
    rows = list(hosts.union(*named).order_by("name"))
    found = {wanted: [name for kind, name, _ in rows if kind == wanted] for wanted in models}
    for role in ("sut", "driver"):
        found[role] = [name for kind, name, roles in rows if kind == "host" and roles in (role, Host.Roles.BOTH)]
    return found


def _expected(team: Team, rows: Iterable[Run]) -> dict[int, Expected]:
    """What is expected of the rows that wait; asks for the queue only when there are any."""
    queued = {run.pk for run in rows if run.state == Run.State.QUEUED}
    return {one.run_id: one for one in schedule_up_to(team, queued).waiting if one.run_id in queued} if queued else {}


def _changes(team: Team, rows: Sequence[Run]) -> dict[int, tuple[ThroughputChange, str]]:
    """Run -> the change of its throughput to its baseline, and whether that is good."""
    found = throughput_changes(team, rows)
    return {run_id: (change, tone_of(METRICS["throughput_rps"], change.ratio)) for run_id, change in found.items()}


def _verdicts(rows: Iterable[Run]) -> dict[int, StoredVerdict]:
    """Variant -> the stored verdict of its experiment's primary metric."""
    variants = {run.variant_id for run in rows if run.variant_id}
    if not variants:
        return {}
    stored = StoredVerdict.objects.filter(candidate_id__in=variants).select_related("experiment")
    return {verdict.candidate_id: verdict for verdict in stored if verdict.metric == verdict.experiment.primary_metric}
