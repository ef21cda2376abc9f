"""Series of a run that others measured: checked, as rows, and added to a run that is stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction

from experiments.asking.intake.sent_results import SentSeries
from experiments.models import Member, Role, Run, SampleSeries
from experiments.registry.errors import Conflict, RequestError
from experiments.registry.teams.access import require
from experiments.registry.teams.audit import record

MAX_CHANNELS = 500


@dataclass(frozen=True)
class AddedSeries:
    """Channels as `role channel`: those that are new, and those that took the place of an earlier one."""

    added: tuple[str, ...]
    replaced: tuple[str, ...]


def check_series(series: Sequence[SentSeries]) -> None:
    """RequestError for a channel that comes twice, or whose times and values do not fit together."""
    seen = set()
    for number, one in enumerate(series):
        if (one.role, one.channel) in seen:
            text = f"The channel {one.channel!r} of the {one.role} comes twice."
            raise RequestError(text, field=f"series.{number}.channel")
        seen.add((one.role, one.channel))
        if len(one.at_s) != len(one.values):
            text = f"{one.channel} has {len(one.at_s):,} times and {len(one.values):,} values; it needs as many."
            raise RequestError(text, field=f"series.{number}.values")
        if any(after < before for before, after in zip(one.at_s, one.at_s[1:], strict=False)):
            raise RequestError(f"The times of {one.channel} must rise.", field=f"series.{number}.at_s")


def sample_rows(run: Run, series: Sequence[SentSeries]) -> list[SampleSeries]:
    """The rows of a run that is stored; the caller stores them."""
    return [
        SampleSeries(run_id=run.pk, role=one.role, channel=one.channel, unit=one.unit, at_s=one.at_s, values=one.values)
        for one in series
    ]


def add_series(member: Member, run: Run, series: Sequence[SentSeries]) -> AddedSeries:
    """Store channels of a run that others measured; one that is there already is replaced, so sending twice is safe.

    Conflict for a run that BenchHub executed: its samples are what its own monitors saw.
    """
    require(member, Role.LAUNCHER)
    if run.origin != Run.Origin.IMPORTED:
        raise Conflict(f"BenchHub executed run #{run.number}; series can be sent for a run that others measured only.")
    check_series(series)
    wanted = [(one.role, one.channel) for one in series]
    with transaction.atomic():
        Run.objects.select_for_update(of=("self",)).get(pk=run.pk)
        there = set(SampleSeries.objects.filter(run=run).values_list("role", "channel"))
        if len(there.union(wanted)) > MAX_CHANNELS:
            raise RequestError(f"A run has at most {MAX_CHANNELS} series; it has {len(there)}.", field="series")
        SampleSeries.objects.bulk_create(
            sample_rows(run, series),
            update_conflicts=True,
            unique_fields=["run", "role", "channel"],
            update_fields=["unit", "at_s", "values"],
        )
        names = {key: " ".join(key) for key in wanted}
        found = AddedSeries(
            tuple(name for key, name in names.items() if key not in there),
            tuple(name for key, name in names.items() if key in there),
        )
        said = {"added": len(found.added), "replaced": len(found.replaced)}
        record(member, "run.series", f"run #{run.number}", after=said)
    return found
