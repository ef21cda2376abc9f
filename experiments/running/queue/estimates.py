"""How long runs take: the load that their workload asks for, and what the last runs on the host needed beside it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import F, OuterRef
from django.db.models.fields.json import KeyTransform
from django.db.models.functions import Extract, JSONObject

from agents.plan import CONTROL_S
from experiments.models import Host, Run, Workload

LAST_RUNS = 10
"""Runs of a host that tell what it needs beside the load; the median forgives one that waited for its network."""


@dataclass(frozen=True)
class Estimates:
    """Seconds of load by workload version, and beside the load by SUT."""

    load_s: Mapping[int, float]
    beside_s: Mapping[int, float]

    def takes_s(self, workload_id: int | None, sut_id: int | None) -> float:
        """A whole run; a host without a past takes what a run usually does (docs/performance.md)."""
        load_s = self.load_s.get(workload_id, 0.0) if workload_id is not None else 0.0
        return load_s + (self.beside_s.get(sut_id, CONTROL_S) if sut_id is not None else CONTROL_S)


def estimates_for(workload_ids: Collection[int], sut_ids: Collection[int]) -> Estimates:
    """In two queries, however many runs there are."""
    workloads = Workload.objects.filter(pk__in=workload_ids).values_list("pk", KeyTransform("phases", "body"))
    last = (
        Run.objects.filter(team=OuterRef("team"), sut=OuterRef("pk"))
        .filter(state=Run.State.FINISHED, outcome=Run.Outcome.SUCCEEDED, started_at__isnull=False)
        .exclude(workload=None)
        .order_by("-number")
        .values(
            data=JSONObject(
                took_s=Extract(F("finished_at") - F("started_at"), "epoch"),
                phases=KeyTransform("phases", "workload__body"),
            )
        )[:LAST_RUNS]
    )
    hosts = Host.objects.filter(pk__in=sut_ids).annotate(last=ArraySubquery(last)).values_list("pk", "last")
    beside = {pk: [max(one["took_s"] - load_s(one["phases"] or ()), 0.0) for one in runs] for pk, runs in hosts}
    return Estimates(
        load_s={pk: load_s(phases or ()) for pk, phases in workloads},
        beside_s={pk: median(found) for pk, found in beside.items() if found},
    )


def load_s(phases: Sequence[Mapping[str, Any]]) -> float:
    """Seconds of load in the phases of a stored workload."""
    return sum(float(phase.get("duration_s", 0)) for phase in phases)
