"""What a run's figures are held against on its page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from experiments.analysis.interval import mean_of
from experiments.metrics import METRICS, MetricSpec
from experiments.models import Run
from experiments.runs.baselines import series_baselines
from experiments.runs.summary import figure as usable


@dataclass(frozen=True)
class Baseline:
    """Figures to compare with: the baseline variant's mean, or an earlier run. `numbers` are the runs behind it."""

    label: str
    numbers: tuple[int, ...]
    figures: Mapping[str, float]


@dataclass(frozen=True)
class Figure:
    """A metric of a run; `tone` says whether the change is good or bad, and is neutral within the noise floor."""

    metric: MetricSpec
    value: float | None
    change_ratio: float | None
    tone: str


def baseline_of(run: Run) -> Baseline | None:
    """The experiment's baseline variant; else the baseline pinned for the series; else the last run before this one
    with the same fingerprint and recipe.

    None for an invalid run: a change in figures that must not be used would be read as a result all the same.
    """
    if run.validity == Run.Validity.INVALID:
        return None
    if run.experiment_id is not None and run.variant is not None and not run.variant.is_baseline:
        runs = list(
            Run.objects.counted()
            .filter(experiment=run.experiment_id, variant__is_baseline=True)
            .only("number", "metrics", "hides_latency")
        )
        if not runs:
            return None
        values = {name: [value for r in runs if (value := usable(r, name)) is not None] for name in METRICS}
        figures = {name: mean.value for name in METRICS if (mean := mean_of(values[name])) is not None}
        plural = "s" if len(runs) > 1 else ""
        return Baseline(f"baseline, {len(runs)} run{plural}", tuple(r.number for r in runs), figures)
    pinned = series_baselines(run.team, [run.fingerprint]).get(run.fingerprint)
    if pinned is not None:
        return _of_run(pinned.run, f"{pinned.name} (#{pinned.run.number})") if pinned.run_id != run.pk else None
    if not run.fingerprint or run.recipe is None:
        return None
    earlier = (
        Run.objects.for_team(run.team)
        .counted()
        .filter(fingerprint=run.fingerprint, recipe__name=run.recipe.name, number__lt=run.number)
        .order_by("-number")
        .first()
    )
    return _of_run(earlier, f"#{earlier.number}") if earlier is not None else None


def _of_run(run: Run, label: str) -> Baseline:
    return Baseline(label, (run.number,), {name: value for name in METRICS if (value := usable(run, name)) is not None})


def figure(run: Run, name: str, baseline: Baseline | None) -> Figure:
    """One of the run's figures with its change."""
    metric = METRICS[name]
    value = usable(run, name)
    base = baseline.figures.get(name) if baseline else None
    change = value / base - 1 if value is not None and base else None
    return Figure(metric, value, change, tone_of(metric, change))


def tone_of(metric: MetricSpec, change_ratio: float | None) -> str:
    """good, bad or neutral."""
    if change_ratio is None or abs(change_ratio) < metric.noise_floor_ratio or change_ratio == 0:
        return "neutral"
    return "good" if (change_ratio > 0) == metric.higher_is_better else "bad"
