"""What belongs to a team, in the order in which it can be stored: rows of each model, and what is left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import ForeignKey, Model, Q, QuerySet

from experiments.models import (
    Alert,
    AlertRule,
    Annotation,
    Application,
    Artifact,
    AuditEntry,
    Bisection,
    BisectionStep,
    BrokenRule,
    CapacitySearch,
    ConfigSnapshot,
    DriverSet,
    Experiment,
    HardwareProfile,
    HistoryLimits,
    Host,
    HostCanary,
    HostGrant,
    HostProfile,
    LatencySpectrum,
    Member,
    Metric,
    Occasion,
    PinnedBaseline,
    PinnedTrend,
    Recipe,
    Run,
    RunEvent,
    RunProfile,
    SampleSeries,
    SavedView,
    Schedule,
    SearchTrial,
    Series,
    StoredVerdict,
    Team,
    TimerTable,
    Trend,
    Tuning,
    TuningSut,
    TuningTrial,
    Variant,
    Workload,
)

TEAM_FIELDS = (
    "slug",
    "name",
    "next_run_number",
    "is_demo",
    "thresholds",
    "link_templates",
    "requires_second_factor",
    "retention_days",
    "created_at",
)
"""Of the team itself; its quotas are the installation's."""


@dataclass(frozen=True)
class Part:
    """The rows of one model that belong to a team, which the lookup `team` leads to.

    `without`: columns that are secret, or true in this installation only. `state`: the lookup to the state of a run
    that must be over, as an unfinished one cannot go on elsewhere; "" = the rows are of no run.
    """

    model: type[Model]
    team: str = "team"
    state: str = ""
    without: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return str(self.model._meta.model_name)

    @property
    def fields(self) -> list[Any]:
        """The columns that are exported."""
        return [field for field in self.model._meta.concrete_fields if field.name not in self.without]

    def rows(self, team: Team) -> QuerySet[Any]:
        """The team's rows, those in the trash too, in the order in which they were made."""
        found = self.model._base_manager.filter(**{self.team: team}).order_by("pk")
        if self.state:
            found = found.filter(Q(**{self.state: Run.State.FINISHED}) | Q(**{f"{self.state}__isnull": True}))
        return found


PARTS = (
    Part(Member),
    Part(Metric),
    Part(HardwareProfile),
    Part(
        Host,
        without=(
            *("private_key", "public_key", "offered_host_key", "leased_by", "canaries_until"),
            *("site", "machine", "place", "boot_id", "installation", "hardware"),
        ),
    ),
    Part(HostGrant, "host__team"),
    Part(HostProfile, "host__team"),
    Part(DriverSet),
    Part(DriverSet.hosts.through, "driverset__team"),
    Part(Application),
    Part(Recipe),
    Part(Workload),
    Part(Experiment),
    Part(HostCanary, "host__team"),
    Part(Variant, "experiment__team"),
    Part(StoredVerdict, "experiment__team"),
    Part(ConfigSnapshot),
    Part(Run, state="state", without=("owner", "lease_until", "doubted_at", "cancel_requested_at")),
    Part(RunEvent, "run__team", state="run__state"),
    Part(SampleSeries, "run__team", state="run__state"),
    Part(LatencySpectrum, "run__team", state="run__state"),
    Part(Artifact, "run__team", state="run__state", without=("content", "stored", "stored_bytes")),
    Part(TimerTable, "run__team", state="run__state"),
    Part(RunProfile, "run__team", state="run__state"),
    Part(Series),
    Part(HistoryLimits),
    Part(Trend, "series__team"),
    Part(Alert),
    Part(AlertRule),
    Part(BrokenRule, "rule__team", state="run__state"),
    Part(Annotation, state="run__state"),
    Part(PinnedBaseline, state="run__state"),
    Part(SavedView),
    Part(PinnedTrend),
    Part(CapacitySearch),
    Part(SearchTrial, "search__team", state="run__state"),
    Part(Bisection),
    Part(BisectionStep, "bisection__team"),
    Part(Tuning),
    Part(TuningSut, "tuning__team"),
    Part(TuningTrial, "tuning__team", state="run__state"),
    Part(Schedule, state="run__state"),
    Part(Occasion, "schedule__team"),
    Part(AuditEntry),
)

LEFT_OUT = {
    "team": "it is in the manifest",
    "token": "a secret, though only its hash is stored",
    "invitation": "a secret link",
    "sharelink": "a secret link to this installation",
    "webhook": "its address and its signature may be secret",
    "delivery": "messages of this installation",
    "deliveryattempt": "messages of this installation",
    "idempotencyrecord": "answers of this installation",
    "dryrun": "a look at hosts, of no use later",
    "reservation": "it holds hosts here and now",
    "reservation_hosts": "it holds hosts here and now",
    "machine": "which hosts are the same machine is seen anew",
    "installation": "another one has an id of its own",
    "worker": "of the installation",
    "site": "its workers are those of this installation",
    "canary": "of the installation",
    "tally": "of the installation",
    "unusedfile": "of the installation",
    "runtrace": "messages of this installation",
    "prometheussource": "it has a secret, and its address is of this network",
    "prometheusreading": "asked by this installation; the channels go along",
}
"""Models that no team takes along, and why."""


def references(part: Part) -> dict[str, type[Model]]:
    """Column -> model, for the columns that refer to rows of other parts."""
    models = {one.model for one in PARTS}
    return {
        field.attname: field.related_model
        for field in part.fields
        if isinstance(field, ForeignKey) and field.related_model in models
    }
