"""Overview: what runs now, what was found last, how the hosts are."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import F
from django.http import HttpResponse
from django.shortcuts import render

from experiments.alerts.triage import AlertFilter, alerts_of
from experiments.alerts.wording import title
from experiments.history import MetricHistory, live_runs, metric_history, series_of
from experiments.models import Alert, Application, Host, Recipe, Run, Series, StoredVerdict, Team, Workload
from frontend.access import TeamRequest, team_view
from frontend.sparkline import points_of

LATEST = 8
SPARKLINES = 4
SPARKLINE_POINTS = 40


@dataclass(frozen=True)
class Sparkline:
    series: Series
    history: MetricHistory
    points: str


@dataclass(frozen=True)
class Todo:
    """A line of the checklist that a new team sees."""

    done: bool
    text: str
    url_name: str


@team_view()
def overview(request: TeamRequest) -> HttpResponse:
    team = request.team
    live = live_runs(team)
    now = {
        "running": [run for run in live if run.state != Run.State.QUEUED],
        "waiting": [run for run in live if run.state == Run.State.QUEUED],
    }
    if request.GET.get("part") == "running":
        return render(request, "overview/_running.html", now)
    latest = list(Run.objects.for_team(team).with_names().filter(state=Run.State.FINISHED).order_by("-number")[:LATEST])
    hosts = list(Host.objects.for_team(team).with_state())
    verdicts = (
        StoredVerdict.objects.filter(experiment__team=team, metric=F("experiment__primary_metric"))
        .select_related("experiment", "candidate")
        .order_by("-updated_at")[:LATEST]
    )
    return render(
        request,
        "overview/overview.html",
        {
            **now,
            "latest": latest,
            "verdicts": verdicts,
            "hosts": hosts,
            "alerts": _open_alerts(team),
            "sparklines": _sparklines(request),
            "todo": [] if latest or live else _todo(request, hosts),
        },
    )


def _open_alerts(team: Team) -> list[tuple[Alert, str]]:
    """Alerts that nobody has looked at, with their titles."""
    return [(alert, title(alert)) for alert in AlertFilter().apply(alerts_of(team))[:LATEST]]


def _sparklines(request: TeamRequest) -> list[Sparkline]:
    found = []
    for series in series_of(request.team)[:SPARKLINES]:
        history = metric_history(request.team, series.fingerprint, "throughput_rps", limit=SPARKLINE_POINTS)
        if len(history.points) > 1:
            found.append(Sparkline(series, history, points_of([point.value for point in history.points])))
    return found


def _todo(request: TeamRequest, hosts: list[Host]) -> list[Todo]:
    team = request.team
    return [
        Todo(bool(hosts), "Register the server under test and the driver host", "hosts"),
        Todo(any(h.state == Host.State.READY for h in hosts), "Approve their host keys", "hosts"),
        Todo(Application.objects.for_team(team).exists(), "Describe the application", "applications"),
        Todo(Workload.objects.for_team(team).exists(), "Describe the workload", "workloads"),
        Todo(Recipe.objects.for_team(team).exists(), "Write a tuning recipe", "recipes"),
        Todo(False, "Start the first run", "new_run"),
    ]
