"""Series: the history that the runs of one fingerprint form."""

from __future__ import annotations

from experiments.models import Run, Series


def extend_series(run: Run, *, application: str, workload: str, tool: str, latency_basis: str) -> Series:
    """Make this run, which is stored, the newest of its fingerprint's series; the first one gives it its names.

    Names longer than their columns are cut: a version of a document is named longer than the document.
    """
    series, _ = Series.objects.update_or_create(
        team_id=run.team_id,
        fingerprint=run.fingerprint,
        defaults={"last_run": run},
        create_defaults={
            "application": application[:120],
            "workload": workload[:120],
            "tool": tool[:60],
            "latency_basis": latency_basis,
            "sut_profile_id": run.sut_profile_id,
            "last_run": run,
        },
    )
    return series
