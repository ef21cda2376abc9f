"""Where the noise of an experiment comes from: from inside its runs, or from one run to the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from experiments.analysis.hierarchy import best_repetitions, hierarchy_of
from experiments.analysis.wording import duration
from experiments.judging.verdicts.judging import counted_figure, seconds_per_run
from experiments.models import Experiment, Run, SampleSeries, Variant

CHANNEL = "load.throughput_rps"
"""Only load tools that record every request have it."""
WINDOW_S = 5.0
MIN_RUNS = 3
MIN_WINDOWS = 4


@dataclass(frozen=True)
class NoiseSources:
    """Of the baseline's runs, cut into windows of `WINDOW_S`: shares of the variance of one window's throughput.

    `best_windows` is how many of them are worth measuring before a restart, by the cost of both; None when the runs
    differ no more than their windows do, so that a restart is never worth its time for the noise alone.
    """

    runs: int
    windows: int
    inside_ratio: float
    between_ratio: float
    restart_s: float
    best_windows: int | None

    @property
    def sentence(self) -> str:
        """What that means and what to do."""
        shares = (
            f"In {self.runs} runs of the baseline, of the noise in {WINDOW_S:g} s of throughput "
            f"{self.inside_ratio:.0%} is inside a run and {self.between_ratio:.0%} from run to run."
        )
        measured_s = self.windows * WINDOW_S
        if self.best_windows is None:
            return f"{shares} Runs differ no more than their windows do: measure longer rather than more often."
        best_s = self.best_windows * WINDOW_S
        restart = f"a restart that takes {duration(self.restart_s)}"
        if best_s > 1.5 * measured_s:
            return f"{shares} With {restart}, measure about {best_s:g} s in each run, not {measured_s:g} s."
        if best_s < measured_s / 1.5:
            return f"{shares} With {restart}, {best_s:g} s in each run would do; spend the rest on more repetitions."
        return f"{shares} With {restart}, the {measured_s:g} s measured in each run are about right."


def noise_sources(experiment: Experiment, variants: Sequence[Variant], runs: Sequence[Run]) -> NoiseSources | None:
    """One query. None when the load tool gives no course of the load, or too few runs of the baseline count."""
    baseline = next((variant for variant in variants if variant.is_baseline), None)
    counted = {
        run.pk: run
        for run in runs
        if baseline is not None and run.variant_id == baseline.pk and counted_figure(run, "throughput_rps")
    }
    series = SampleSeries.objects.filter(run__in=counted, channel=CHANNEL).order_by("run")
    found = [(counted[one.run_id], windows_of(one.at_s, one.values)) for one in series]
    found = [(run, windows) for run, windows in found if len(windows) >= MIN_WINDOWS]
    if len(found) < MIN_RUNS:
        return None
    least = min(len(windows) for _, windows in found)
    analysed = hierarchy_of([windows[:least] for _, windows in found])
    inside, between = analysed.noise_shares
    if inside == 0:
        return None
    took_s = seconds_per_run([run for run, _ in found])
    restart_s = WINDOW_S if took_s is None else max(took_s - least * WINDOW_S, 1.0)
    (best,) = best_repetitions(analysed.t2, (WINDOW_S, restart_s))
    return NoiseSources(len(found), least, inside, between, restart_s, best or None)


def windows_of(at_s: Sequence[float], values: Sequence[float]) -> list[float]:
    """Means of whole windows from the start of measuring on; a window without a sample ends them."""
    times, rates = np.asarray(at_s), np.asarray(values)
    found: list[float] = []
    if not len(times):
        return found
    for start in np.arange(0, times.max(), WINDOW_S):
        inside = rates[(times >= start) & (times < start + WINDOW_S)]
        if not len(inside) or start + WINDOW_S > times.max() + 1.0:
            break
        found.append(float(inside.mean()))
    return found
