"""What a run's figures are held against on its page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from experiments.analysis.interval import mean_of
from experiments.judging.comparing.changes import in_words, is_candidate, previous_runs, runs_in_words
from experiments.models import Run
from experiments.registry.metrics.vocabulary import MetricSpec
from experiments.registry.runs.baselines import series_baselines
from experiments.registry.runs.summary import figure as usable


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
    """The experiment's baseline variant; else the baseline pinned for the series; else the previous run of its trend.

    None for an invalid run: a change in figures that must not be used would be read as a result all the same.
    """
    if run.validity == Run.Validity.INVALID:
        return None
    if is_candidate(run):
        runs = list(
            Run.objects.counted()
            .filter(experiment=run.experiment_id, variant__is_baseline=True)
            .only("number", "metrics", "hides_latency")
        )
        if not runs:
            return None
        names = {name for r in runs for name in r.metrics}
        values = {name: [value for r in runs if (value := usable(r, name)) is not None] for name in names}
        figures = {name: mean.value for name in names if (mean := mean_of(values[name])) is not None}
        label = in_words("experiment", runs_in_words(len(runs)))
        return Baseline(label, tuple(r.number for r in runs), figures)
    pinned = series_baselines(run.team, [run.fingerprint]).get(run.fingerprint)
    if pinned is not None:
        label = in_words("pinned", f"{pinned.name} (#{pinned.run.number})")
        return _of_run(pinned.run, label) if pinned.run_id != run.pk else None
    previous = previous_runs(run.team, [run]).get(run.pk)
    if previous is None:
        return None
    earlier = Run.objects.for_team(run.team).get(number=previous.number)
    return _of_run(earlier, in_words("previous", f"#{earlier.number}"))


def _of_run(run: Run, label: str) -> Baseline:
    figures = {name: value for name in run.metrics if (value := usable(run, name)) is not None}
    return Baseline(label, (run.number,), figures)


def figure(run: Run, metric: MetricSpec, baseline: Baseline | None) -> Figure:
    """One of the run's figures with its change; nothing is a part of what is 0 or below."""
    value = usable(run, metric.name)
    base = baseline.figures.get(metric.name) if baseline else None
    change = value / base - 1 if value is not None and base is not None and base > 0 else None
    return Figure(metric, value, change, tone_of(metric, change))


def tone_of(metric: MetricSpec, change_ratio: float | None) -> str:
    """good, bad or neutral."""
    if change_ratio is None or abs(change_ratio) < metric.noise_floor_ratio or change_ratio == 0:
        return "neutral"
    return "good" if (change_ratio > 0) == metric.higher_is_better else "bad"
