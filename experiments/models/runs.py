"""Runs and their events. A run's row carries its summary, so a list of runs joins nothing that it does not show."""

from __future__ import annotations

from collections import Counter
from typing import Self

from django.conf import settings
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import Count, F, Func, Prefetch, Q

from experiments.models.documents import Application, Recipe, Workload
from experiments.models.experiments import Experiment, Variant
from experiments.models.hosts import DriverSet, HardwareProfile, Host
from experiments.models.teams import Team, TeamOwnedQuerySet


class ConfigSnapshot(models.Model):
    """The effective configuration of runs, content-addressed: most runs share most of it."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="+")
    digest = models.CharField(max_length=64)
    values = models.JSONField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["team", "digest"], name="one_snapshot_per_content")]

    def __str__(self) -> str:
        return self.digest[:12]


class RunQuerySet(TeamOwnedQuerySet):
    def with_names(self) -> RunQuerySet:
        """Runs with the names that every list shows, without the wide columns: ten queries, however many runs.

        Not one query with eight joins: PostgreSQL takes longer to plan that than to do all of this.
        """
        return self.defer("spec", "findings", "parameters").prefetch_related(
            Prefetch("recipe", Recipe.objects.defer("body")),
            Prefetch("workload", Workload.objects.defer("body")),
            Prefetch("application", Application.objects.defer("body")),
            Prefetch("sut", Host.objects.named()),
            "drivers",
            Prefetch("drivers__hosts", Host.objects.named()),
            "variant",
            "experiment",
            "created_by",
        )

    def unfinished_by_state(self) -> Counter[str]:
        """How many runs are in each state but `finished`; reads the small index of unfinished runs only."""
        unfinished = self.exclude(state=Run.State.FINISHED).order_by()
        return Counter(dict(unfinished.values_list("state").annotate(Count("pk"))))

    def for_team(self, team: Team) -> Self:
        """What is in the trash is found by `experiments.keeping.retention` alone."""
        return super().for_team(team).kept()

    def kept(self) -> Self:
        """Runs that are not in the trash."""
        return self.filter(trashed_at=None)

    def numbered(self, number: int) -> Run | None:
        """A team's run of this number, with all that its page and its answer name."""
        parts = ("team", "recipe", "workload", "application", "sut", "drivers", "variant", "experiment", "created_by")
        return self.select_related(*parts).filter(number=number).first()

    def plain(self) -> Self:
        """Runs that were not profiled: a profiled one is the twin of such a run and is compared with no other."""
        return self.filter(profiled=False)

    def counted(self) -> RunQuerySet:
        """Runs whose figures may enter a comparison or a history: profiled ones never do."""
        return (
            self.kept()
            .plain()
            .filter(state=Run.State.FINISHED, outcome=Run.Outcome.SUCCEEDED, validity__in=Run.USABLE, archived=False)
        )


class Run(models.Model):
    class State(models.TextChoices):
        QUEUED = "queued"
        PREPARING = "preparing"
        WARMING_UP = "warming_up", "warming up"
        MEASURING = "measuring"
        COLLECTING = "collecting"
        RESTORING = "restoring"
        FINISHED = "finished"

    class Outcome(models.TextChoices):
        NONE = "", "not finished"
        SUCCEEDED = "succeeded"
        FAILED = "failed"
        CANCELLED = "cancelled"
        LOST = "lost"

    class Validity(models.TextChoices):
        NONE = "", "not judged"
        VALID = "valid"
        SUSPECT = "suspect"
        INVALID = "invalid"

    class Restore(models.TextChoices):
        NONE = "", "nothing changed"
        VERIFIED = "verified"
        DIRTY = "dirty"

    class Priority(models.IntegerChoices):
        LOW = -1
        NORMAL = 0
        HIGH = 1

    class Cause(models.TextChoices):
        """Whose fault the end was, which decides whether the same run once more may succeed."""

        NONE = "", "none"
        PERSON = "person"
        SPECIFICATION = "specification"
        HOST = "host"
        BENCHHUB = "benchhub", "BenchHub"

    class Origin(models.TextChoices):
        EXECUTED = "executed"
        IMPORTED = "imported"

    ACTIVE = ("preparing", "warming_up", "measuring", "collecting", "restoring")
    USABLE = ("valid", "suspect")
    TRIED_AGAIN = ("failed", "lost")
    """Outcomes after which a run may have been queued once more."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="runs")
    number = models.PositiveIntegerField()
    origin = models.CharField(max_length=10, choices=Origin.choices, default=Origin.EXECUTED)
    experiment = models.ForeignKey(Experiment, null=True, blank=True, on_delete=models.CASCADE, related_name="runs")
    variant = models.ForeignKey(Variant, null=True, blank=True, on_delete=models.CASCADE, related_name="runs")
    block = models.PositiveSmallIntegerField(null=True)
    spec = models.JSONField(null=True)
    profiled = models.BooleanField(default=False)
    """Whether profilers worked on its servers, which costs them something: `spec` names them."""
    fingerprint = models.CharField(max_length=64, blank=True)
    labels = models.JSONField(default=dict)
    tags = models.JSONField(default=list)
    parameters = models.JSONField(default=dict)
    notes = models.TextField(blank=True)
    notes_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    notes_at = models.DateTimeField(null=True)

    application = models.ForeignKey(Application, null=True, on_delete=models.PROTECT, related_name="runs")
    recipe = models.ForeignKey(Recipe, null=True, on_delete=models.PROTECT, related_name="runs")
    workload = models.ForeignKey(Workload, null=True, on_delete=models.PROTECT, related_name="runs")
    sut = models.ForeignKey(Host, null=True, on_delete=models.PROTECT, related_name="runs")
    drivers = models.ForeignKey(DriverSet, null=True, on_delete=models.PROTECT, related_name="+")
    sut_profile = models.ForeignKey(HardwareProfile, null=True, on_delete=models.PROTECT, related_name="+")

    state = models.CharField(max_length=16, choices=State.choices, default=State.QUEUED)
    outcome = models.CharField(max_length=16, choices=Outcome.choices, default=Outcome.NONE, blank=True)
    validity = models.CharField(max_length=16, choices=Validity.choices, default=Validity.NONE, blank=True)
    findings = models.JSONField(default=list)
    hides_latency = models.BooleanField(default=False)
    restore = models.CharField(max_length=16, choices=Restore.choices, default=Restore.NONE, blank=True)
    failure = models.TextField(blank=True)
    failure_hint = models.TextField(blank=True)
    cause = models.CharField(max_length=16, choices=Cause.choices, default=Cause.NONE, blank=True)

    priority = models.SmallIntegerField(choices=Priority.choices, default=Priority.NORMAL)
    retry_of = models.ForeignKey("self", null=True, blank=True, on_delete=models.SET_NULL, related_name="retries")
    retries_left = models.PositiveSmallIntegerField(default=0)

    owner = models.CharField(max_length=120, blank=True)
    fence = models.BigIntegerField(default=0)
    lease_until = models.DateTimeField(null=True)
    doubted_at = models.DateTimeField(null=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    last_seq = models.PositiveIntegerField(default=0)
    cancel_requested_at = models.DateTimeField(null=True)

    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    queued_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    measured_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    metrics = models.JSONField(default=dict)
    throughput_rps = models.FloatField(null=True)
    latency_p50_ms = models.FloatField(null=True)
    latency_p99_ms = models.FloatField(null=True)
    errors_total = models.BigIntegerField(null=True)
    sut_cpu_ratio = models.FloatField(null=True)
    driver_cpu_ratio = models.FloatField(null=True)
    config = models.ForeignKey(ConfigSnapshot, null=True, on_delete=models.PROTECT, related_name="runs")

    archived = models.BooleanField(default=False)
    is_demo = models.BooleanField(default=False)
    trashed_at = models.DateTimeField(null=True)

    objects = RunQuerySet.as_manager()

    class Meta:
        constraints = [
            # Runs are numbered per team (#142); the list pages over this key, newest first.
            models.UniqueConstraint(fields=["team", "number"], name="run_number_once_per_team"),
        ]
        indexes = [
            # A series: one fingerprint in the order of measuring (Trends, Compare's history strip).
            models.Index(fields=["team", "fingerprint", "number"], name="run_series"),
            # The queue, the dispatcher and live pages: the few runs that are not finished.
            models.Index(fields=["team", "state", "number"], name="run_live", condition=~Q(state="finished")),
            # Filters of the runs page; each keeps keyset order by number.
            models.Index(fields=["team", "recipe", "-number"], name="run_by_recipe"),
            models.Index(fields=["team", "workload", "-number"], name="run_by_workload"),
            models.Index(fields=["team", "sut", "-number"], name="run_by_sut"),
            models.Index(fields=["experiment", "variant", "block"], name="run_by_experiment"),
            # Sorting the runs page by its two most used figures, and by time.
            models.Index(fields=["team", "-throughput_rps", "-number"], name="run_by_throughput"),
            models.Index(fields=["team", "latency_p99_ms", "-number"], name="run_by_p99"),
            models.Index(fields=["team", "-finished_at", "-number"], name="run_by_finish"),
            # Whose run started last: the queue's fair order asks it of every member.
            models.Index(
                fields=["team", "created_by", "-started_at"],
                condition=Q(started_at__isnull=False),
                name="run_by_start",
            ),
            # The few archived runs, which every other list leaves out.
            models.Index(fields=["team", "-number"], condition=Q(archived=True), name="run_archived"),
            # The few runs in the trash: its page, and what removes them for good.
            models.Index(fields=["trashed_at"], condition=Q(trashed_at__isnull=False), name="run_trashed"),
            # CI asks by commit, branch or build.
            GinIndex(fields=["labels"], name="run_labels", opclasses=["jsonb_path_ops"]),
            # People ask by what was chosen: every run with a heap of 4g.
            GinIndex(fields=["parameters"], name="run_parameters", opclasses=["jsonb_path_ops"]),
            # A word typed into the query box (experiments.telling.run_list.words).
            GinIndex(Func(F("labels"), F("tags"), function="run_words"), name="run_words"),
        ]

    def __str__(self) -> str:
        return f"#{self.number}"

    @property
    def hosts(self) -> tuple[Host, ...]:
        """Its hosts, each once, the SUT first; none of an imported run."""
        found = [self.sut] if self.sut else []
        return tuple(dict.fromkeys([*found, *(self.drivers.everyone if self.drivers else ())]))

    @property
    def is_live(self) -> bool:
        return self.state != self.State.FINISHED

    @property
    def is_sound(self) -> bool:
        """Whether it measured well: it ran to its end, no check made it invalid, and it is not in the trash."""
        return self.outcome == self.Outcome.SUCCEEDED and self.validity in self.USABLE and self.trashed_at is None

    @property
    def is_usable(self) -> bool:
        """Whether its figures may be used: it is sound, and was not profiled."""
        return self.is_sound and not self.profiled

    @property
    def is_twin(self) -> bool:
        """Whether it is the profiled twin of a run of its experiment: it explains, and measures nothing."""
        return self.profiled and self.experiment_id is not None

    def repeats(self, variant: Variant) -> bool:
        """Whether it is a repetition of the variant that counts. Runs of an A/A check are left out before."""
        return self.variant_id == variant.pk and self.is_usable


class RunEvent(models.Model):
    """One fact of a run in order. The journal is here too: nothing about a run lives only in Redis or in a worker.

    Its table is kept in months (`experiments.keeping.retention.months`). The database holds no reference to the run:
    the rows of a run that is gone for good stay where nobody finds them, until their month is cleared.
    """

    pk = models.CompositePrimaryKey("run_id", "seq")
    run = models.ForeignKey(
        Run, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="events"
    )
    seq = models.PositiveIntegerField()
    kind = models.CharField(max_length=32)
    payload = models.JSONField()
    fence = models.BigIntegerField()
    at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "seq"], name="event_seq_once_per_run")]

    def __str__(self) -> str:
        return f"{self.run_id}:{self.seq} {self.kind}"


class DryRun(models.Model):
    """A read-only look at the hosts for a choice that is not launched: the plan with the real commands.

    `given_at`: when a worker of a site whose keys stay there took it last.
    """

    class State(models.TextChoices):
        PENDING = "pending"
        READY = "ready"
        FAILED = "failed"

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="+")
    sut = models.ForeignKey(Host, on_delete=models.CASCADE, related_name="+")
    drivers = models.ForeignKey(DriverSet, on_delete=models.CASCADE, related_name="+")
    spec = models.JSONField()
    state = models.CharField(max_length=10, choices=State.choices, default=State.PENDING)
    plan = models.JSONField(null=True)
    message = models.TextField(blank=True)
    hint = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    given_at = models.DateTimeField(null=True)

    objects = TeamOwnedQuerySet.as_manager()

    def __str__(self) -> str:
        return f"dry run {self.pk}"
