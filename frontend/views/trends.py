"""Trends: the history of a series, one chart per metric."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.dateparse import parse_date

from experiments.errors import RequestError
from experiments.history import metric_history, series_of
from experiments.metrics import METRICS
from experiments.models import Series
from frontend.access import TeamRequest, team_view
from frontend.charts import history_json

RANGES = {"30": "30 days", "90": "90 days", "365": "1 year", "": "All"}
SHOWN_FIRST = ("throughput_rps", "latency_p50_ms", "latency_p99_ms", "sut_cpu_ratio")


@team_view()
def trends(request: TeamRequest) -> HttpResponse:
    """The page holds the choice; each chart fetches its own points."""
    series = series_of(request.team)
    chosen = _chosen(request, series)
    metrics = [name for name in request.GET.getlist("metric") if name in METRICS] or list(SHOWN_FIRST)
    query = request.GET.copy()
    query.pop("metric", None)
    query["series"] = str(chosen.pk) if chosen else ""
    return render(
        request,
        "trends/trends.html",
        {
            "series": series,
            "chosen": chosen,
            "metrics": [METRICS[name] for name in METRICS if name in metrics],
            "all_metrics": METRICS.values(),
            "ranges": RANGES,
            "days": request.GET.get("days", ""),
            "recipe": request.GET.get("recipe", ""),
            "query": query.urlencode(),
        },
    )


@team_view()
def points(request: TeamRequest) -> HttpResponse:
    """The points of one metric of one series."""
    series = series_of(request.team)
    chosen = _chosen(request, series)
    if chosen is None:
        raise Http404("No such series.")
    any_hardware = request.GET.get("hardware") == "any"
    try:
        histories = {
            str(one.sut_profile or "unknown"): metric_history(
                request.team,
                one.fingerprint,
                request.GET.get("metric", "throughput_rps"),
                recipe=request.GET.get("recipe", ""),
                since=_since(request),
                until=_day(request.GET.get("until", "")),
            )
            for one in (_siblings(chosen, series) if any_hardware else [chosen])
        }
    except RequestError as error:
        return JsonResponse({"detail": error.message}, status=400)
    return JsonResponse(history_json(histories, run_url=reverse("run", args=[request.team.slug, 0])))


def _siblings(chosen: Series, series: list[Series]) -> list[Series]:
    """Series that differ from the chosen one in hardware only."""

    def same(one: Series) -> tuple[str, ...]:
        return one.application, one.workload, one.tool, one.latency_basis

    return [one for one in series if same(one) == same(chosen)]


def _chosen(request: TeamRequest, series: list[Series]) -> Series | None:
    asked = request.GET.get("series", "")
    if not asked:
        return series[0] if series else None
    found = next((one for one in series if str(one.pk) == asked), None)
    if found is None:
        raise Http404("No such series.")
    return found


def _since(request: TeamRequest) -> datetime | None:
    days = request.GET.get("days", "")
    if days in RANGES and days:
        return datetime.now(UTC) - timedelta(days=int(days))
    return _day(request.GET.get("since", ""))


def _day(text: str) -> datetime | None:
    try:
        day = parse_date(text)
    except ValueError:
        day = None
    return datetime(day.year, day.month, day.day, tzinfo=UTC) if day else None
