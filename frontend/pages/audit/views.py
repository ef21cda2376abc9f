"""Settings, Audit: who changed what, by person, action, object and time; also as CSV."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, time, timedelta

from django.http import HttpResponseBase, QueryDict
from django.shortcuts import render
from django.views.decorators.http import require_safe

from experiments.models import AuditEntry, Role
from experiments.registry.teams.audit_trail import AuditFilter, audit_entries, changes_of
from experiments.telling.run_list.csv_response import CsvResponse
from experiments.telling.run_list.csv_text import csv_line
from frontend.pages.audit.forms import AuditForm
from frontend.shared.access import TeamRequest, team_view
from frontend.shared.query import id_in

ROWS = 50
CSV_ROWS = 100_000
FILTERS = ("person", "action", "subject", "since", "until")


@require_safe
@team_view(role=Role.ADMIN)
def audit(request: TeamRequest) -> HttpResponseBase:
    """The newest entries that fit, keyset paged by id."""
    form = AuditForm(request.team, request.GET)
    found = audit_entries(request.team, _wanted(form))
    rows, older = found.newest_page(id_in(request.GET.get("before", "")), ROWS)
    context = {
        "tab": "audit",
        "form": form,
        "entries": [(entry, changes_of(entry)) for entry in rows],
        "filtered": any(request.GET.get(name) for name in FILTERS),
        "older_query": _query(request.GET, before=older) if older else "",
        "csv_query": _query(request.GET),
    }
    return render(request, "audit/page.html", context)


@require_safe
@team_view(role=Role.ADMIN)
def audit_csv(request: TeamRequest) -> HttpResponseBase:
    """The entries that fit, the newest 100,000, one line for each value that changed."""
    found = audit_entries(request.team, _wanted(AuditForm(request.team, request.GET)))
    lines = _lines(found[:CSV_ROWS].iterator(chunk_size=1000))
    return CsvResponse(lines, filename=f"audit-{request.team.slug}.csv")


def _lines(entries: Iterator[AuditEntry]) -> Iterator[str]:
    yield csv_line(["at", "person", "action", "subject", "value", "before", "after"])
    for entry in entries:
        who = entry.actor.get_username() if entry.actor else ""
        start = (entry.at.isoformat(), who, entry.action, entry.subject)
        changes = [(change.name, change.before, change.after) for change in changes_of(entry)]
        for change in changes or [("", "", "")]:
            yield csv_line((*start, *change))


def _wanted(form: AuditForm) -> AuditFilter:
    """What can be understood of the query; the rest filters nothing, and the form says so."""
    form.is_valid()
    given = form.cleaned_data
    since, until = given.get("since"), given.get("until")
    return AuditFilter(
        person=given.get("person", ""),
        action=given.get("action", ""),
        subject=given.get("subject", ""),
        since=datetime.combine(since, time(), UTC) if since else None,
        until=datetime.combine(until, time(), UTC) + timedelta(days=1) if until else None,
    )


def _query(given: QueryDict, **more: int) -> str:
    kept = QueryDict(mutable=True)
    for name in FILTERS:
        if given.get(name):
            kept[name] = str(given[name])
    for name, value in more.items():
        kept[name] = str(value)
    return kept.urlencode()
