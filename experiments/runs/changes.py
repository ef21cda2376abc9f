"""How far runs are from their baselines, for lists: the same few queries, however many runs there are."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import Avg

from experiments.models import Run, Team
from experiments.runs.baselines import series_baselines


def throughput_changes(team: Team, runs: Sequence[Run]) -> dict[int, float]:
    """Run -> the change of its throughput against its experiment's baseline variant, else its series' pinned baseline.

    A ratio, +0.05 = 5 % more. An invalid run, a baseline itself and a run without a baseline are not in it. Needs
    `with_names`.
    """
    judged = [run for run in runs if run.is_usable and run.throughput_rps is not None]
    experiments = {run.experiment_id for run in judged if run.experiment_id is not None}
    means = dict(
        Run.objects.counted()
        .filter(experiment__in=experiments, variant__is_baseline=True)
        .order_by()
        .values_list("experiment")
        .annotate(Avg("throughput_rps"))
        if experiments
        else ()
    )
    pinned = series_baselines(team, [run.fingerprint for run in judged])
    found = {}
    for run in judged:
        baseline = pinned.get(run.fingerprint)
        if run.experiment_id in means:
            base = None if run.variant is not None and run.variant.is_baseline else means[run.experiment_id]
        else:
            base = baseline.run.throughput_rps if baseline is not None and baseline.run_id != run.pk else None
        if base:
            found[run.pk] = run.throughput_rps / base - 1
    return found
