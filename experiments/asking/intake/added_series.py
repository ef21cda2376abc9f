"""Series that are sent later, for a run that others measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction

from experiments.asking.intake.reported import SentSeries, check_series
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


def add_series(member: Member, run: Run, series: Sequence[SentSeries]) -> AddedSeries:
    """Store channels of a run that others measured; one that is there already is replaced, so sending twice is safe.

    Conflict for a run that BenchHub executed: its samples are what its own monitors saw.
    """
    require(member, Role.LAUNCHER)
    if run.origin != Run.Origin.IMPORTED:
        raise Conflict(f"BenchHub executed run #{run.number}; series can be sent for a run that others measured only.")
    check_series(series)
    wanted = {(one.role, one.channel): one for one in series}
    with transaction.atomic():
        Run.objects.select_for_update(of=("self",)).get(pk=run.pk)
        there = set(SampleSeries.objects.filter(run=run).values_list("role", "channel"))
        if len(there | wanted.keys()) > MAX_CHANNELS:
            raise RequestError(f"A run has at most {MAX_CHANNELS} series; it has {len(there)}.", field="series")
        SampleSeries.objects.bulk_create(
            [
                SampleSeries(run=run, role=role, channel=channel, unit=one.unit, at_s=one.at_s, values=one.values)
                for (role, channel), one in wanted.items()
            ],
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
