"""The bases of what comes in and goes out, and the shapes that several nouns share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any, Literal
from urllib.parse import quote

from django.conf import settings
from pydantic import BaseModel, ConfigDict, Field

from agents.spec import MAX_DRIVERS
from agents.steps.recipe import Value
from experiments.api.choices import FindingLevel, RunCause, RunOrigin, RunOutcome, RunRestore, RunState, RunValidity
from experiments.asking.launching.retries import links_of
from experiments.judging.comparing.changes import Basis, ThroughputChange, throughput_changes
from experiments.judging.evidence.roles import members_of
from experiments.models import Document, Host, Run
from experiments.registry.runs.links import links_elsewhere
from experiments.registry.teams.link_templates import MAX_NAME, MAX_URL, MOST_TEMPLATES, PLACEHOLDERS
from experiments.running.queue.plan import Expected
from experiments.running.queue.priorities import MAX_RETRIES, name_of
from experiments.running.queue.waiting import FORESEEN, expected_of
from experiments.telling.run_list.lines import Names

# Where `true` must not be read as 1 and `"no"` not as false: it decides what starts.
Whole = Annotated[int, Field(strict=True)]
Flag = Annotated[bool, Field(strict=True)]
RunNumber = Annotated[int, Field(strict=True, ge=1, lt=2**31)]
Labels = Annotated[dict[str, Annotated[str, Field(max_length=200)]], Field(max_length=50)]
Tags = Annotated[list[Annotated[str, Field(max_length=60)]], Field(max_length=50)]
Parameters = Annotated[dict[str, Value], Field(max_length=100)]
Reference = Annotated[
    str, Field(min_length=1, max_length=130, description="A name, or `name@3` for a version that is not the newest")
]
MemberNames = Annotated[
    dict[str, str],
    Field(max_length=8, description="Of a system: the role of each further member of the application, and its host"),
]
DriverNames = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=120)]],
    Field(min_length=1, max_length=MAX_DRIVERS, description="The driver hosts; several divide the load between them"),
]
Priority = Literal["low", "normal", "high"]
Retries = Annotated[
    int, Field(strict=True, ge=0, le=MAX_RETRIES, description="How often to try again when a host or BenchHub fails")
]
MAX_ID = 2**63 - 1


class LinkTemplateOut(BaseModel):
    """A link to another tool, with placeholders such as {from_ms}."""

    name: str
    url: str


class Body(BaseModel):
    """A request body: what it does not know, it refuses."""

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True, allow_inf_nan=False)


class LinkTemplateIn(Body):
    name: str = Field(min_length=1, max_length=MAX_NAME, examples=["Grafana"])
    url: str = Field(
        min_length=1,
        max_length=MAX_URL,
        description="Begins with https:// or http://. Behind the host's name may stand: "
        + ", ".join(f"{{{name}}}" for name in PLACEHOLDERS),
        examples=["https://grafana.example.com/d/node/hosts?from={from_ms}&to={to_ms}&var-host={host}"],
    )


LinkTemplates = Annotated[list[LinkTemplateIn], Field(max_length=MOST_TEMPLATES)]


class Named(BaseModel):
    """A document version by its name."""

    name: str
    version: int

    @classmethod
    def of(cls, document: Document | None) -> Named | None:
        return None if document is None else cls(name=document.name, version=document.version)


class Finding(BaseModel):
    """One check of a run's validity, in a sentence, with the numbers behind it."""

    check: str
    level: FindingLevel = Field(description="skipped: this host or tool does not show it")
    sentence: str
    evidence: dict[str, float | str] = {}
    source: str = ""
    thresholds: dict[str, bool | float] = {}


class RunRow(BaseModel):
    """A run as lists show it."""

    number: int
    url: str
    origin: RunOrigin
    state: RunState
    outcome: RunOutcome
    validity: RunValidity
    restore: RunRestore
    experiment: int | None
    variant: str | None
    block: int | None
    application: Named | None
    recipe: Named | None
    workload: Named | None
    sut: str | None
    drivers: list[str] = Field(description="The driver hosts; empty for an imported run")
    labels: dict[str, str]
    tags: list[str]
    priority: Priority
    retries_left: int
    created_by: str | None
    queued_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    throughput_rps: float | None
    latency_p50_ms: float | None
    latency_p99_ms: float | None
    errors_total: int | None
    sut_cpu_ratio: float | None
    driver_cpu_ratio: float | None
    archived: bool
    profiled: bool = Field(description="Profilers worked on it: it counts in no verdict, trend, gate or baseline")

    @classmethod
    def of(cls, run: Run, team: str) -> RunRow:
        return cls(**run_fields(run, team))


class ThroughputChangeOut(BaseModel):
    """How far a run's throughput is from what it is held against."""

    ratio: float = Field(description="+0.05 = 5 % more")
    basis: Basis = Field(
        description="The experiment's baseline variant; else the baseline pinned for the series; else the previous run "
        "of its trend: of the same series, with the same recipe and parameters"
    )
    against: str = Field(description="What that is, in words", examples=["previous run #141"])

    @classmethod
    def of(cls, change: ThroughputChange | None) -> ThroughputChangeOut | None:
        return None if change is None else cls(ratio=change.ratio, basis=change.basis, against=change.against)


class ListedRun(RunRow):
    """A run of the list, with its change."""

    throughput_change: ThroughputChangeOut | None = Field(
        None,
        description="null for a run that is not finished or not valid, for a baseline itself, and without anything "
        "to compare with. Lists have it only when `fields` names it: looking it up takes longer than all the rest",
    )


class WaitingOut(BaseModel):
    """Why a queued run has not started yet, and when it may be expected to."""

    reason: str
    runs_before: int = Field(
        description="Runs that use its hosts, or will before it does; in a launch's answer without a time, at most"
    )
    expected_start_at: datetime | None = Field(
        description="An estimate; null when only a person can end the wait, and in a launch's answer when more than "
        f"{FORESEEN} other runs of the team wait: `GET /runs/{{number}}` has it"
    )

    @classmethod
    def of(cls, expected: Expected | None) -> WaitingOut | None:
        if expected is None:
            return None
        return cls(reason=expected.reason, runs_before=expected.runs_before, expected_start_at=expected.starts_at)


class SystemMemberOut(BaseModel):
    """A member of the system that a run was of, and what it showed; null = not seen."""

    role: str
    is_loaded: bool = Field(description="Whether it is the server that was loaded")
    server: str
    host: str
    cpu_ratio: float | None = Field(description="How busy the CPUs were that it may use")
    server_cpu_ratio: float | None = Field(description="How many CPUs its own processes used")
    memory_used_bytes: float | None
    received_bytes_per_s: float | None = Field(description="By the network card that carried most")
    sent_bytes_per_s: float | None


class RunLinkOut(BaseModel):
    """A link of the run to another tool, from a template of its team or of one of its hosts."""

    name: str
    url: str
    host: str = Field(description="The host that it is of; empty when it is of the whole run")


class RunDetail(ListedRun):
    """A run with its frozen specification and the reasons for its validity."""

    fingerprint: str
    sut_profile: str | None = Field(description="The hardware of the SUT: a digest for `GET /profiles/{digest}`")
    failure: str
    failure_hint: str
    cause: RunCause = Field(description="Whose fault the failure was; empty for nobody's")
    retry_of: int | None = Field(description="Number of the run that this one repeats")
    retried_as: int | None = Field(description="Number of the run that repeats this one")
    waiting: WaitingOut | None = Field(description="Of a queued run only")
    notes: str
    hides_latency: bool = Field(description="The latency figures are backlog and must not be compared")
    findings: list[Finding]
    metrics: dict[str, float]
    cancel_requested_at: datetime | None
    measured_at: datetime | None
    spec: dict[str, Any] | None = Field(description="The RunSpec; POST /runs takes it back. None for an import")
    links: list[RunLinkOut] = Field([], description="To other tools, in the run's window")
    members: list[SystemMemberOut] = Field(
        [], description="Of a system of several hosts, the loaded server first", exclude_if=lambda found: not found
    )

    @classmethod
    def of(cls, run: Run, team: str, expected: Callable[[Run], Expected | None] | None = expected_of) -> RunDetail:
        """`expected`: how it is found out what a waiting run waits for; None = it is not asked for."""
        links = links_of(run)
        return cls(
            **run_fields(run, team),
            throughput_change=ThroughputChangeOut.of(throughput_changes(run.team, [run]).get(run.pk)),
            fingerprint=run.fingerprint,
            sut_profile=run.sut_profile.digest if run.sut_profile else None,
            failure=run.failure,
            failure_hint=run.failure_hint,
            cause=run.cause,
            retry_of=links.retry_of,
            retried_as=links.retried_as,
            waiting=WaitingOut.of(expected(run)) if expected is not None else None,
            notes=run.notes,
            hides_latency=run.hides_latency,
            findings=[Finding(**finding) for finding in run.findings],
            metrics=run.metrics,
            cancel_requested_at=run.cancel_requested_at,
            measured_at=run.measured_at,
            spec=run.spec,
            links=[RunLinkOut(**asdict(one)) for one in links_elsewhere(run, datetime.now(UTC))],
            members=[SystemMemberOut(**asdict(one)) for one in members_of(run)],
        )


def run_fields(run: Run, team: str) -> dict[str, Any]:
    """The columns of a run's row. Needs `with_names`."""
    return {
        **_figures(run, team),
        "experiment": run.experiment_id,
        "variant": run.variant.name if run.variant else None,
        "application": Named.of(run.application),
        "recipe": Named.of(run.recipe),
        "workload": Named.of(run.workload),
        "sut": _host_name(run.sut),
        "drivers": run.drivers.names if run.drivers else [],
        "created_by": run.created_by.get_username() if run.created_by else None,
    }


def line_fields(line: Any, names: Names, team: str) -> dict[str, Any]:
    """The same of a line of the list and what it refers to, ready to be written: a hundred models take longer."""
    return {
        **_figures(line, team),
        "experiment": line.experiment_id,
        "variant": names.one("variant_id", line.variant_id),
        "application": _named(names.document("application_id", line.application_id)),
        "recipe": _named(names.document("recipe_id", line.recipe_id)),
        "workload": _named(names.document("workload_id", line.workload_id)),
        "sut": names.one("sut_id", line.sut_id),
        "drivers": names.several("drivers_id", line.drivers_id),
        "created_by": names.one("created_by_id", line.created_by_id),
    }


def _figures(run: Any, team: str) -> dict[str, Any]:
    """What a run, or a line of the list, says without looking elsewhere; latency that saturation hides is left out."""
    shown = not run.hides_latency
    return {
        "number": run.number,
        "url": run_url(team, run.number),
        "origin": run.origin,
        "state": run.state,
        "outcome": run.outcome,
        "validity": run.validity,
        "restore": run.restore,
        "block": run.block,
        "labels": run.labels,
        "tags": run.tags,
        "priority": name_of(run.priority),
        "retries_left": run.retries_left,
        "queued_at": run.queued_at,
        "started_at": run.started_at,
        "finished_at": run.finished_at,
        "throughput_rps": run.throughput_rps,
        "latency_p50_ms": run.latency_p50_ms if shown else None,
        "latency_p99_ms": run.latency_p99_ms if shown else None,
        "errors_total": run.errors_total,
        "sut_cpu_ratio": run.sut_cpu_ratio,
        "driver_cpu_ratio": run.driver_cpu_ratio,
        "archived": run.archived,
        "profiled": run.profiled,
    }


def run_url(team: str, number: int) -> str:
    """The whole address of the run's page."""
    return f"{settings.BENCHHUB_URL}/t/{team}/runs/{number}/"


def artifact_url(number: int, name: str) -> str:
    """The whole address of a file of a run, over the API."""
    return f"{settings.BENCHHUB_URL}/api/v1/runs/{number}/artifacts/{quote(name, safe='')}"


def experiment_url(team: str, experiment_id: int) -> str:
    """The whole address of the experiment's page."""
    return f"{settings.BENCHHUB_URL}/t/{team}/experiments/{experiment_id}/"


def search_url(team: str, search_id: int) -> str:
    """The whole address of the search's page."""
    return f"{settings.BENCHHUB_URL}/t/{team}/experiments/searches/{search_id}/"


def schedule_url(team: str, schedule_id: int) -> str:
    """The whole address of the schedule's page."""
    return f"{settings.BENCHHUB_URL}/t/{team}/experiments/schedules/{schedule_id}/"


def bisection_url(team: str, bisection_id: int) -> str:
    """The whole address of the bisection's page."""
    return f"{settings.BENCHHUB_URL}/t/{team}/experiments/bisections/{bisection_id}/"


def tuning_url(team: str, tuning_id: int) -> str:
    """The whole address of the tuning search's page."""
    return f"{settings.BENCHHUB_URL}/t/{team}/experiments/tunings/{tuning_id}/"


def alert_url(team: str, alert_id: int) -> str:
    """The whole address of the alert's page."""
    return f"{settings.BENCHHUB_URL}/t/{team}/alerts/{alert_id}/"


def _named(found: tuple[int, str] | None) -> dict[str, Any] | None:
    return None if found is None else {"name": found[1], "version": found[0]}


def _host_name(host: Host | None) -> str | None:
    return host.name if host else None
