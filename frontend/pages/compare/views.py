"""Compare: runs side by side, the baseline first; comparability before numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from django.db.models import Q
from django.http import HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse

from experiments.asking.prometheus.queries import PREFIX
from experiments.judging.comparing.comparison import MAX_COMPARED, Comparison, MetricRow, comparable_runs, compare
from experiments.judging.comparing.history import thinned_history
from experiments.judging.comparing.machines import machines_of_runs
from experiments.judging.comparing.scaling import groups_of_runs, scaling_of
from experiments.judging.comparing.timers import timers_of
from experiments.judging.evidence.roles import limit_of_runs
from experiments.judging.verdicts import cpu_verdicts
from experiments.models import Run, RunProfile, SampleSeries
from experiments.registry.errors import RequestError
from experiments.registry.metrics.vocabulary import METRICS, MetricSpec
from experiments.registry.runs.baselines import baseline_named, baselines_of
from experiments.telling.run_list.csv_text import csv_line
from frontend.charts.channels import COMPARED
from frontend.charts.machines import with_charts
from frontend.charts.percentiles import percentiles_json
from frontend.charts.samples import overlay_json, part_in
from frontend.charts.scaling import scaling_json
from frontend.charts.trend import history_json
from frontend.pages.compare.markdown import markdown
from frontend.shared.access import TeamRequest, team_view
from frontend.shared.baseline import tone_of

STRIP_POINTS = 500
"""Enough to see whether a difference is within the noise."""
MOST_OWN = 100
"""Channels that were sent with figures and are offered to be drawn."""


def asked_runs(request: TeamRequest) -> list[Run]:
    """The runs of `?runs=142,145`, or of `?runs=145&runs=142` as ticked in a list: there the oldest is the baseline.

    `?baseline=release 11.0` puts the run that is pinned under this name in front of them.
    RequestError says what is wrong with it.
    """
    given = request.GET.getlist("runs")
    asked = ",".join(given)
    words = [word.strip().lstrip("#") for word in asked.split(",") if word.strip()]
    for word in words:
        if not (word.isascii() and word.isdigit() and len(word) < 10):
            raise RequestError(f"{word!r} is no run number.", field="runs")
    if len(words) > MAX_COMPARED:
        raise RequestError(f"Compare at most {MAX_COMPARED} runs; {len(words)} were chosen.", field="runs")
    numbers = [int(word) for word in words]
    if len(given) > 1:
        numbers.sort()
    if name := request.GET.get("baseline", ""):
        pinned = baseline_named(request.team, name).run.number
        numbers = [pinned, *(number for number in numbers if number != pinned)]
    return comparable_runs(request.team, numbers)


@team_view()
def compare_runs(request: TeamRequest) -> HttpResponse:
    """The page; `?format=csv` gives the metric table alone."""
    try:
        runs = asked_runs(request)
        comparison = compare(runs)
    except RequestError as error:
        status = 200 if "runs" not in request.GET else 404 if "There is no run" in error.message else 400
        return render(request, "compare/choose.html", {"error": error if status != 200 else None}, status=status)
    if request.GET.get("format") == "csv":
        disposition = {"Content-Disposition": 'attachment; filename="compare.csv"'}
        return HttpResponse("".join(_csv_lines(comparison)), "text/csv; charset=utf-8", headers=disposition)
    metric = _charted(comparison, request.GET.get("metric", ""))
    channel, channels = request.GET.get("channel", ""), _channels(runs)
    scaling = scaling_of(groups_of_runs(runs))
    machines = machines_of_runs(runs, metric.name)
    return render(
        request,
        "compare/page.html",
        {
            "comparison": comparison,
            "runs": runs,
            "numbers": ",".join(str(run.number) for run in runs),
            "rows": _rows(comparison),
            "tagged": any(run.tags for run in runs),
            "noted": any(run.notes for run in runs),
            "orders": [(run, _with_baseline(runs, run)) for run in runs],
            "pinned": [(one.name, _with_baseline(runs, one.run)) for one in baselines_of(request.team)],
            "metric": metric,
            "channel": channel if channel in channels else next(iter(channels)),
            "channels": channels,
            "percentiles": percentiles_json(runs),
            "history": _history(request, runs, metric.name),
            "cpu_verdicts": cpu_verdicts.of_runs(runs),
            "limits": [(run, limit.sentence) for run in runs if (limit := limit_of_runs([run]))],
            "machines": machines,
            "machine_splits": with_charts(machines, metric),
            "timer_tables": timers_of(runs),
            "profiled": _profiled(runs),
            "scaling": scaling,
            "scaling_chart": scaling_json(scaling) if scaling else None,
            "markdown": markdown(comparison, request.build_absolute_uri(request.get_full_path())),
        },
    )


@team_view()
def overlays(request: TeamRequest) -> HttpResponse:
    """One channel of the compared runs over each other."""
    try:
        runs = asked_runs(request)
    except RequestError as error:
        return JsonResponse({"detail": error.message}, status=400)
    return JsonResponse(overlay_json(runs, request.GET.get("channel", "cpu_set.busy_ratio"), part_in(request.GET)))


def _channels(runs: Sequence[Run]) -> dict[str, str]:
    """What can be drawn: the usual channels that a run has, those of a Prometheus, and those sent with figures."""
    found = SampleSeries.objects.filter(run__in=runs)
    there = set(found.filter(channel__in=COMPARED).values_list("channel", flat=True))
    own = Q(run__origin=Run.Origin.IMPORTED) | Q(channel__startswith=PREFIX)
    names = (
        found.filter(own)
        .exclude(channel__in=COMPARED)
        .order_by("channel")
        .values_list("channel", flat=True)
        .distinct()[:MOST_OWN]
    )
    usual = {name: label for name, label in COMPARED.items() if name in there}
    return usual | {name: name for name in names} or COMPARED


@dataclass(frozen=True)
class Change:
    """Against the baseline; `more` is the plain difference where that is 0 or below and no ratio exists."""

    ratio: float | None
    more: float | None
    tone: str


def _rows(comparison: Comparison) -> list[tuple[MetricRow, list[tuple[float | None, Change, int]]]]:
    """Each metric with its values and changes; nothing is better or worse than a figure that must not be used."""
    invalid = {index for index, run in enumerate(comparison.runs) if run.validity == Run.Validity.INVALID}
    found = []
    for row in comparison.rows:
        changes = [_change(row, index) for index in range(len(row.values))]
        changes = [replace(c, tone="neutral") if invalid & {0, index} else c for index, c in enumerate(changes)]
        numbers = [run.number for run in comparison.runs]
        found.append((row, list(zip(row.values, changes, numbers, strict=True))))
    return found


def _charted(comparison: Comparison, asked: str) -> MetricSpec:
    """The metric whose history is shown: the one that was asked for, else throughput, else the first there is."""
    found = {row.metric.name: row.metric for row in comparison.rows}
    first = next(iter(found.values()), METRICS["throughput_rps"])
    return found.get(asked) or found.get("throughput_rps", first)


def _change(row: MetricRow, index: int) -> Change:
    change_pct, value, base = row.changes_pct[index], row.values[index], row.values[0]
    if change_pct is not None:
        return Change(change_pct / 100, None, tone_of(row.metric, change_pct / 100))
    if base is not None and value is not None and value != base:
        more = value - base
        return Change(None, more, "good" if (more > 0) == row.metric.higher_is_better else "bad")
    return Change(None, None, "neutral")


def _with_baseline(runs: list[Run], baseline: Run) -> str:
    return ",".join(str(run.number) for run in [baseline, *(run for run in runs if run != baseline)])


def _history(request: TeamRequest, runs: list[Run], metric: str) -> dict[str, object] | None:
    """The series that the baseline belongs to, the compared runs marked in it."""
    if not runs[0].fingerprint:
        return None
    compared = [run.number for run in runs]
    history = thinned_history(request.team, runs[0].fingerprint, metric, keep=compared, most=STRIP_POINTS)
    return history_json(
        {str(runs[0].sut_profile or ""): history},
        run_url=reverse("run", args=[request.team.slug, 0]),
        highlight=compared,
    )


def _profiled(runs: Sequence[Run]) -> tuple[str, str]:
    """The numbers of the baseline and of the other runs that have a profile."""
    taken = set(RunProfile.objects.filter(run__in=runs).values_list("run_id", flat=True))
    first, *others = [str(run.number) if run.pk in taken else "" for run in runs]
    return first, ",".join(number for number in others if number)


def _csv_lines(comparison: Comparison) -> Iterator[str]:
    names = [f"#{run.number}" for run in comparison.runs]
    yield csv_line(["metric", "unit", "direction", *names, *(f"{name} change %" for name in names[1:])])
    for row in comparison.rows:
        spec = row.metric
        yield csv_line([spec.name, spec.unit, spec.direction, *row.values, *row.changes_pct[1:]])
