"""Overview: what runs now, what was found last, how the hosts are."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.db.models import F
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from experiments.judging.alerts.triage import AlertFilter
from experiments.judging.alerts.wording import title, trend_name
from experiments.judging.comparing.history import metric_history, series_of
from experiments.models import Alert, Host, Run, StoredVerdict, Team, Trend
from experiments.registry.metrics.own_metrics import metric_named, standing_metrics
from experiments.registry.metrics.vocabulary import METRICS, THROUGHPUT, label_of
from experiments.registry.runs.nights import nights_of
from experiments.running.queue.waiting import active_of
from experiments.telling.overview.first_steps import FirstSteps, first_steps, hide_first_steps
from experiments.telling.overview.pinned import pin_trend, pinned_trends, unpin_trend
from frontend.charts.sparkline import points_of
from frontend.shared.access import TeamRequest, team_view
from frontend.shared.refusals import RefusalSaid

LATEST = 8
SPARKLINES = 4
SPARKLINE_POINTS = 40
MOST_HOSTS = 12
MOST_RUNNING = 12
OF_RUNNING = (
    *("number", "state", "started_at", "queued_at"),
    *("recipe__name", "recipe__version", "sut__name", "variant__name", "experiment__name"),
)
"""What the list of running runs shows of each: asked in one query, as the page is asked every ten seconds."""
CALM = ("leased", Host.State.READY)
"""States of hosts that nobody has to look after."""


@dataclass(frozen=True)
class Running:
    """A run that is under way; `done_pct` is what the estimate of its end makes of it, None where it tells nothing."""

    run: Run
    done_pct: int | None
    ends_at: datetime | None


@dataclass(frozen=True)
class Sparkline:
    """One line: what it is of, its last value and run, and the polyline."""

    href: str
    title: str
    note: str
    points: str
    value: float
    unit: str
    number: int
    trend_id: int | None = None


@dataclass(frozen=True)
class Step:
    """A line of the checklist that a new team sees; `also` is a second way to do it, as (page of the help, words)."""

    done: bool
    text: str
    url_name: str
    also: tuple[str, str] | None = None


@team_view()
def overview(request: TeamRequest) -> HttpResponse:
    team = request.team
    now = _now(team)
    if request.GET.get("part") == "running":
        return render(request, "overview/_running.html", now)
    latest = list(Run.objects.for_team(team).with_names().filter(state=Run.State.FINISHED).order_by("-number")[:LATEST])
    verdicts = (
        StoredVerdict.objects.filter(experiment__team=team, metric=F("experiment__primary_metric"))
        .select_related("experiment", "candidate")
        .order_by("-updated_at")[:LATEST]
    )
    return render(
        request,
        "overview/page.html",
        {
            **now,
            "latest": latest,
            "verdicts": verdicts,
            "alerts": _open_alerts(team),
            "sparklines": _sparklines(request),
            "steps": _steps(first_steps(request.member)),
            **_hosts(team),
        },
    )


@require_POST
@team_view()
def no_first_steps(request: TeamRequest) -> HttpResponse:
    """Dismiss the checklist for good."""
    hide_first_steps(request.member)
    return redirect("overview", request.team.slug)


@require_POST
@team_view()
def pin(request: TeamRequest, pk: int) -> HttpResponse:
    """Put a trend on the Overview, or take it off; then back to where that was asked for."""
    trend = Trend.objects.select_related("series").filter(pk=pk, series__team=request.team).first()
    if trend is None:
        raise Http404("No such trend.")
    off = "off" in request.POST
    with RefusalSaid(request):
        (unpin_trend if off else pin_trend)(request.member, trend)
        where = "no longer on the Overview" if off else "on the Overview"
        messages.success(request, f"{label_of(trend.metric)} of {trend_name(trend)} is {where}.")
    if off:
        return redirect("overview", request.team.slug)
    return redirect(f"{reverse('trends', args=[request.team.slug])}?series={trend.series_id}")


def _now(team: Team) -> dict[str, Any]:
    """What is under way and how far it is, as many as fit; how much more there is, and how many runs wait."""
    states = Run.objects.for_team(team).unfinished_by_state()
    waiting = states.pop(Run.State.QUEUED, 0)
    active = (
        Run.objects.for_team(team).filter(state__in=Run.ACTIVE).select_related("recipe", "sut", "variant", "experiment")
    )
    runs = list(active.only(*OF_RUNNING).order_by("number")[:MOST_RUNNING]) if states else []
    return {"running": _running(runs), "more": max(states.total() - MOST_RUNNING, 0), "waiting": waiting}


def _running(runs: list[Run]) -> list[Running]:
    """How far each one is; what is expected is asked only when something runs."""
    schedule = active_of(runs) if runs else None
    found = []
    for run in runs:
        expected = schedule.of(run.pk) if schedule else None
        ends_at = expected.ends_at if expected else None
        done = None
        if schedule and ends_at and run.started_at and ends_at > schedule.at:
            done = int(100 * (schedule.at - run.started_at) / (ends_at - run.started_at))
        found.append(Running(run, done, ends_at if done is not None else None))
    return found


def _open_alerts(team: Team) -> list[tuple[Alert, str]]:
    """Alerts that nobody has looked at, with their titles."""
    return [(alert, title(alert)) for alert in AlertFilter().alerts(team)[:LATEST]]


def _sparklines(request: TeamRequest) -> list[Sparkline]:
    """The pinned trends; while none is pinned, what stands for the series that ran last."""
    team = request.team
    trends = reverse("trends", args=[team.slug])
    if pinned := list(pinned_trends(team)):
        return [line for one in pinned if (line := _pinned_line(trends, one.trend)) is not None]
    found: list[Sparkline] = []
    for series in series_of(team)[:SPARKLINES]:
        own = standing_metrics(team.pk, series.last_run.metrics or ()) if series.last_run else []
        metric = own[0] if own else METRICS[THROUGHPUT]
        points = metric_history(team, series.fingerprint, metric.name, limit=SPARKLINE_POINTS).points
        if len(points) > 1:
            polyline = points_of([point.value for point in points])
            href, note = f"{trends}?series={series.pk}", f"{series.workload} · {series.tool}"
            last = points[-1]
            found.append(Sparkline(href, series.application, note, polyline, last.value, metric.unit, last.number))
    return found


def _pinned_line(trends: str, trend: Trend) -> Sparkline | None:
    runs = trend.points
    nights = nights_of(runs)
    if not len(nights):
        return None
    metric = metric_named(trend.series.team_id, trend.metric)
    query = urlencode({"series": trend.series_id, "metric": trend.metric, "recipe": trend.recipe})
    return Sparkline(
        href=f"{trends}?{query}",
        title=metric.label,
        note=trend_name(trend),
        points=points_of([float(value) for value in nights.value[-SPARKLINE_POINTS:]]),
        value=float(nights.value[-1]),
        unit=metric.unit,
        number=int(runs["number"][nights.first[-1]]),
        trend_id=trend.pk,
    )


def _steps(found: FirstSteps | None) -> list[Step]:
    if found is None:
        return []
    return [
        Step(
            found.hosts,
            "Add the server under test and the driver host",
            "own_hosts",
            ("lab", "or try two made-up ones"),
        ),
        Step(
            found.documents,
            "Install a template from the library",
            "library",
            ("postgresql", "or begin with PostgreSQL, without Java"),
        ),
        Step(found.run, "Launch the first run", "new_run"),
        Step(found.experiment, "Answer the first question with an experiment", "new_experiment"),
        Step(found.others, "Invite somebody, or let CI launch", "settings", ("ci", "how CI does it")),
    ]


def _hosts(team: Team) -> dict[str, Any]:
    """The hosts that need somebody before the others, as many as fit; and how many there are in each state."""
    rows = list(Host.objects.for_team(team).values_list("pk", "name", "state", "leased_by"))
    states = Counter("leased" if leased_by else state for _, _, state, leased_by in rows)
    first = sorted(rows, key=lambda row: (row[2] in CALM, row[1]))[:MOST_HOSTS]
    shown = Host.objects.with_state().in_bulk([row[0] for row in first])
    return {
        "hosts": [shown[row[0]] for row in first if row[0] in shown],
        "host_states": sorted(states.items(), key=lambda item: (item[0] in CALM, item[0])),
    }
