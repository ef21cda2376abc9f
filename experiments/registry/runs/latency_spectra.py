"""The latency histograms of runs: kept when a run ends, read as percentile curves of one run or of several together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agents.results.spectrum import Spectrum
from experiments.analysis.percentiles import CountedValues, PercentileCurve, curve_of
from experiments.models import LatencySpectrum, Run


@dataclass(frozen=True)
class MergedCurve:
    """The curve of all samples of `runs` (numbers) together; the runs in `left_out` have no histogram."""

    curve: PercentileCurve
    runs: tuple[int, ...]
    left_out: tuple[int, ...]


def keep_spectrum(run: Run, spectrum: Spectrum | None) -> None:
    """Store the histogram of the run's measured phase; the same run again replaces it."""
    if spectrum is None:
        return
    figures = {"values_ms": list(spectrum.values_ms), "counts": list(spectrum.counts), "exact": spectrum.exact}
    LatencySpectrum.objects.update_or_create(run=run, defaults=figures)


def curves_of(runs: Sequence[Run]) -> dict[int, PercentileCurve]:
    """Run id -> its curve, of the runs that have a histogram. One query."""
    return {pk: curve_of([spectrum]) for pk, spectrum in _spectra(runs).items()}


def merged_curves(groups: Mapping[int, Sequence[Run]]) -> dict[int, MergedCurve]:
    """For each group of runs the curve of all its samples, where there are any; one query for all groups.

    The runs must be of one latency basis, and must not hide their latency.
    """
    spectra = _spectra([run for runs in groups.values() for run in runs])
    found = {}
    for name, runs in groups.items():
        with_one = [run for run in runs if run.pk in spectra]
        if with_one:
            found[name] = MergedCurve(
                curve_of([spectra[run.pk] for run in with_one]),
                tuple(run.number for run in with_one),
                tuple(run.number for run in runs if run.pk not in spectra),
            )
    return found


def _spectra(runs: Sequence[Run]) -> dict[int, CountedValues]:
    rows = LatencySpectrum.objects.filter(run__in=runs)
    return {row.run_id: CountedValues(row.values_ms, row.counts, row.exact) for row in rows}
