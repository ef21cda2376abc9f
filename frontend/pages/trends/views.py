"""Trends: the history of a series, one chart per metric."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.dateparse import parse_date

from experiments.judging.alerts.telling_series import telling_series
from experiments.judging.alerts.triage import alerts_of, change_points, expected_levels
from experiments.judging.comparing.history import series_of, thinned_history
from experiments.models import Alert, Series, Trend
from experiments.registry.errors import RequestError
from experiments.registry.metrics.own_metrics import followed_metrics, metrics_of
from experiments.registry.metrics.vocabulary import METRICS, MetricSpec
from experiments.registry.notes import chart_notes
from experiments.registry.replica import read_from_replica
from experiments.telling.run_list.conditions import parse_time
from frontend.charts.trend import Environment, trend_json
from frontend.shared.access import TeamRequest, team_view

RANGES = {"30": "30 days", "90": "90 days", "365": "1 year", "": "All"}
MOST_CHANGES = 40
SHOWN_FIRST = ("throughput_rps", "latency_p50_ms", "latency_p99_ms", "sut_cpu_ratio")


@team_view()
def trends(request: TeamRequest) -> HttpResponse:
    """The page holds the choice; each chart fetches its own points."""
    series = series_of(request.team)
    chosen = _chosen(request, series)
    known = _metrics_of(chosen) if chosen else {}
    asked = request.GET.getlist("metric") or (_shown_first(chosen) if chosen else ())
    metrics = [name for name in known if name in asked] or list(known)[:1]
    recipe = request.GET.get("recipe", "").replace("\0", "")
    query = request.GET.copy()
    query.pop("metric", None)
    query["series"] = str(chosen.pk) if chosen else ""
    return render(
        request,
        "trends/page.html",
        {
            "series": series,
            "chosen": chosen,
            "metrics": [known[name] for name in metrics],
            "marked": _marked(request, chosen, metrics, recipe) if chosen else {},
            "notes": chart_notes.of_series([chosen]) if chosen else [],
            "all_metrics": known.values(),
            "own": [name for name in metrics if name not in METRICS],
            "followed": followed_metrics(request.team.pk, metrics),
            "ranges": RANGES,
            "days": request.GET.get("days", ""),
            "recipe": recipe,
            "query": query.urlencode(),
            "share_query": _share_query(request, chosen, recipe) if chosen else "",
        },
    )


def _share_query(request: TeamRequest, chosen: Series, recipe: str) -> str:
    """What is shared of this page, but for the metric."""
    shown = {"kind": "trend", "series": chosen.pk, "recipe": recipe, "range": request.GET.get("days", "")}
    picked = {name: request.GET[name] for name in ("from", "to") if request.GET.get(name)}
    return urlencode(shown | picked if len(picked) == 2 else shown)


@team_view()
def points(request: TeamRequest) -> HttpResponse:
    """The points of one metric of one series."""
    series = series_of(request.team)
    chosen = _chosen(request, series)
    if chosen is None:
        raise Http404("No such series.")
    metric, recipe = request.GET.get("metric", "throughput_rps"), request.GET.get("recipe", "")
    shown = _siblings(chosen, series) if request.GET.get("hardware") == "any" else [chosen]
    fingerprints = [one.fingerprint for one in shown]
    try:
        changes = change_points(request.team, fingerprints, metric, recipe)
        since, until = _since(request), _until(request)
        kept = [alert.run_after.number for alert in changes if alert.run_after]
        histories = read_from_replica(
            lambda: {
                Environment.of(one): thinned_history(
                    request.team, one.fingerprint, metric, recipe=recipe, since=since, until=until, keep=kept
                )
                for one in shown
            }
        )
    except RequestError as error:
        return JsonResponse({"detail": error.message}, status=400)
    levels = expected_levels(request.team, fingerprints, metric, recipe)
    notes = list(chart_notes.of_series(shown))
    return JsonResponse(trend_json(request.team, histories, changes, levels, notes))


def _metrics_of(series: Series) -> dict[str, MetricSpec]:
    """The known metrics, and the own ones that the newest run of the series has."""
    return METRICS | metrics_of(series.team_id, series.last_run.metrics if series.last_run else ())


def _shown_first(series: Series) -> list[str]:
    """The usual ones, unless the series has none of them, then its own ones that are followed."""
    measured = series.last_run.metrics if series.last_run else SHOWN_FIRST
    usual = SHOWN_FIRST if any(name in measured for name in SHOWN_FIRST) else ()
    return [*usual, *followed_metrics(series.team_id, measured)]


@dataclass(frozen=True)
class Marked:
    """Beside one chart: the latest change points, and the trends whose present level may be called expected."""

    changes: list[Alert]
    trends: list[Trend]


def _marked(request: TeamRequest, chosen: Series, metrics: list[str], recipe: str) -> dict[str, Marked]:
    """By metric; two queries for all charts of the page."""
    trends = (
        chosen.trends.filter(metric__in=metrics)
        .filter(length__gt=0)
        .only("recipe", "variation", "metric", "expected_value")
    )
    lines = list((trends.filter(recipe=recipe) if recipe else trends).order_by("recipe", "variation"))
    changes = alerts_of(request.team).filter(trend__in=lines, kind=Alert.Kind.CHANGE, stands=True)
    latest = list(changes.exclude(triage=Alert.Triage.INVALID).order_by("-after_at_s")[:MOST_CHANGES])
    return {
        name: Marked(
            [alert for alert in latest if alert.trend.metric == name], [one for one in lines if one.metric == name]
        )
        for name in metrics
    }


def _siblings(chosen: Series, series: list[Series]) -> list[Series]:
    """Series that differ from the chosen one in the hardware, or in the version of the load tool, only."""

    def same(one: Series) -> tuple[str, ...]:
        return one.application, one.workload, one.tool.split(" ")[0], one.latency_basis

    return [one for one in series if same(one) == same(chosen)]


def _chosen(request: TeamRequest, series: list[Series]) -> Series | None:
    asked = request.GET.get("series", "")
    if not asked:
        return telling_series(request.team, series)
    found = next((one for one in series if str(one.pk) == asked), None)
    if found is None:
        raise Http404("No such series.")
    return found


def _since(request: TeamRequest) -> datetime | None:
    if zoomed := request.GET.get("from"):
        return parse_time(zoomed, "from")
    days = request.GET.get("days", "")
    if days in RANGES and days:
        return datetime.now(UTC) - timedelta(days=int(days))
    return _day(request.GET.get("since", ""))


def _until(request: TeamRequest) -> datetime | None:
    if zoomed := request.GET.get("to"):
        return parse_time(zoomed, "to")
    return _day(request.GET.get("until", ""))


def _day(text: str) -> datetime | None:
    try:
        day = parse_date(text)
    except ValueError:
        day = None
    return datetime(day.year, day.month, day.day, tzinfo=UTC) if day else None
