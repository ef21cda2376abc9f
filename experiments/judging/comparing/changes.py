"""What runs are held against, and how far they are from it: the same few queries, however many runs there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from django.db.models import Avg, Count

from experiments.models import Run, Team, Trend
from experiments.registry.runs.baselines import series_baselines

Basis = Literal["experiment", "pinned", "previous"]


@dataclass(frozen=True)
class ThroughputChange:
    """A change of throughput, +0.05 = 5 % more, and in words what it is held against."""

    ratio: float
    basis: Basis
    against: str


@dataclass(frozen=True)
class PreviousRun:
    number: int
    throughput_rps: float


@dataclass(frozen=True)
class _Base:
    throughput_rps: float
    basis: Basis
    against: str


def throughput_changes(team: Team, runs: Sequence[Run]) -> dict[int, ThroughputChange]:
    """Run -> the change of its throughput against its baseline.

    That is the experiment's baseline variant, else the baseline pinned for the series, else the previous run of its
    trend. An invalid run, a baseline itself and a run with nothing to compare with are not in it. Needs `with_names`.
    """
    judged = [run for run in runs if run.is_usable and run.throughput_rps is not None]
    candidates = [run for run in judged if is_candidate(run)]
    others = [run for run in judged if not is_candidate(run)]
    bases = _of_experiments(candidates) | _of_series(team, others)
    return {
        run.pk: ThroughputChange(run.throughput_rps / base.throughput_rps - 1, base.basis, base.against)
        for run in judged
        if (base := bases.get(run.pk)) is not None and run.throughput_rps is not None
    }


def is_candidate(run: Run) -> bool:
    """Whether its experiment's baseline variant is what it is held against."""
    return run.experiment_id is not None and run.variant is not None and not run.variant.is_baseline


def in_words(basis: Basis, name: str) -> str:
    """What a run is held against, as pages, CSV and API call it."""
    return {"experiment": f"baseline, {name}", "pinned": name, "previous": f"previous run {name}"}[basis]


def runs_in_words(count: int) -> str:
    return f"{count} run{'s' if count != 1 else ''}"


def previous_runs(team: Team, runs: Sequence[Run]) -> dict[int, PreviousRun]:
    """Run -> the point before it in its trend: of the same series, with the same recipe and parameters. One query.

    A run that counts in no history has none. Needs the runs' recipes.
    """
    wanted = {(run.fingerprint, run.number): run.pk for run in runs if run.fingerprint}
    trends = Trend.objects.filter(
        series__team=team,
        series__fingerprint__in={fingerprint for fingerprint, _ in wanted},
        recipe__in={run.recipe.name if run.recipe else "" for run in runs},
        metric="throughput_rps",
    )
    found = {}
    for fingerprint, packed in trends.values_list("series__fingerprint", "packed") if wanted else ():
        points = np.frombuffer(packed, Trend.POINT)
        asked = [number for of, number in wanted if of == fingerprint]
        for place in np.flatnonzero(np.isin(points["number"], asked)):
            if place > 0:
                before, run_pk = points[place - 1], wanted[fingerprint, int(points["number"][place])]
                found[run_pk] = PreviousRun(int(before["number"]), float(before["value"]))
    return found


def _of_experiments(candidates: Sequence[Run]) -> dict[int, _Base]:
    experiments = {run.experiment_id for run in candidates}
    if not experiments:
        return {}
    baselines = Run.objects.counted().filter(experiment__in=experiments, variant__is_baseline=True).order_by()
    means = {
        experiment: (mean, count)
        for experiment, mean, count in baselines.values_list("experiment").annotate(
            Avg("throughput_rps"), Count("throughput_rps")
        )
    }
    found = {}
    for run in candidates:
        mean, count = means.get(run.experiment_id, (None, 0))
        if mean:
            found[run.pk] = _Base(mean, "experiment", in_words("experiment", runs_in_words(count)))
    return found


def _of_series(team: Team, runs: Sequence[Run]) -> dict[int, _Base]:
    pinned = series_baselines(team, [run.fingerprint for run in runs])
    earlier = previous_runs(team, [run for run in runs if run.fingerprint not in pinned])
    found = {}
    for run in runs:
        baseline, previous = pinned.get(run.fingerprint), earlier.get(run.pk)
        if baseline is not None and baseline.run_id != run.pk and baseline.run.throughput_rps:
            words = in_words("pinned", f"{baseline.name} (#{baseline.run.number})")
            found[run.pk] = _Base(baseline.run.throughput_rps, "pinned", words)
        elif previous is not None and previous.throughput_rps:
            found[run.pk] = _Base(previous.throughput_rps, "previous", in_words("previous", f"#{previous.number}"))
    return found
