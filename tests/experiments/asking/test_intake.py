"""The one intake of results: a tool's report and a result that a program sent are judged, kept and refused alike."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from experiments.asking.intake.imports import import_reports
from experiments.asking.intake.ingest import store_results
from experiments.asking.intake.sent_results import SentResult
from experiments.models import Application, Artifact, AuditEntry, Member, Metric, Role, Run, Series, Trend, Workload
from experiments.registry.documents.versions import save_version
from experiments.registry.errors import Forbidden, RequestError
from experiments.registry.metrics.own_metrics import learn
from experiments.registry.metrics.vocabulary import own_metric
from experiments.registry.runs.file_store import whole
from experiments.registry.teams.quotas import QuotaExceeded, admit_runs
from tests.experiments.conftest import APPLICATION, WORKLOAD, MakeMember

X86 = (Path(__file__).parents[2] / "agents" / "cases" / "lscpu" / "seed-x86.txt").read_text()
FIGURES: dict[str, float] = {"throughput_rps": 100, "latency_p99_ms": 18.2, "requests": 1000}
PATIENCE_S = 60

Door = Callable[..., Run]


def own(name: str, value: float = 3, unit: str = "count") -> dict[str, Any]:
    return {name: {"value": value, "unit": unit, "direction": "lower"}}


def imported(
    member: Member, *, metrics: Mapping[str, float] = FIGURES, own: Mapping[str, Any] | None = None, **more: Any
) -> Run:
    """The figures as a file that somebody imports."""
    (run,) = import_reports(member, kind="command", text=json.dumps({**metrics, **(own or {})}), **more)
    return run


def sent(
    member: Member, *, metrics: Mapping[str, float] = FIGURES, own: Mapping[str, Any] | None = None, **more: Any
) -> Run:
    """The same figures as a program sends them."""
    result = {"tool": "command", "metrics": dict(metrics), "own_metrics": own or {}, **more}
    (run,) = store_results(member, [SentResult.model_validate(result)])
    return run


DOORS = pytest.mark.parametrize("door", [imported, sent])


@pytest.fixture
def documents(admin: Member) -> None:
    save_version(admin, Application, "shop", APPLICATION)
    save_version(admin, Workload, "page", WORKLOAD)


@DOORS
@pytest.mark.usefixtures("documents")
def test_the_same_figures_become_the_same_run(door: Door, admin: Member) -> None:
    at = datetime(2026, 3, 1, tzinfo=UTC)
    run = door(
        admin,
        own=own("age_ms", unit="ms"),
        labels={"cpus": "4"},
        application="shop",
        workload="page",
        machine=X86,
        measured_at=at,
    )
    run.refresh_from_db()
    assert (run.number, run.origin, run.state, run.outcome) == (1, "imported", "finished", "succeeded")
    assert (run.validity, run.measured_at, run.finished_at, run.created_by) == ("suspect", at, at, admin.user)
    assert run.metrics == {
        "throughput_rps": 100,
        "latency_p99_ms": 18.2,
        "age_ms": 3,
        "sut_cpus": 4,
        "throughput_per_core_rps": 25,
    }
    assert (run.throughput_rps, run.latency_p99_ms, run.latency_p50_ms, run.errors_total) == (100, 18.2, None, None)
    assert (str(run.application), str(run.workload), run.recipe) == ("shop v1", "page v1", None)
    assert run.sut_profile is not None
    kept = Artifact.objects.get(run=run)
    assert (kept.name, json.loads(whole(kept))) == (
        "figures-json.txt",
        FIGURES | own("age_ms", unit="ms"),
    )
    series = Series.objects.get()
    assert (series.fingerprint, series.application, series.workload) == (run.fingerprint, "shop v1", "page v1")
    assert (series.last_run, series.sut_profile) == (run, run.sut_profile)
    assert set(Trend.objects.values_list("metric", flat=True)) == {"throughput_rps", "latency_p99_ms", "age_ms"}
    assert Metric.objects.get().unit == "ms"
    assert AuditEntry.objects.filter(subject="run #1", actor=admin.user).count() == 1


@pytest.mark.usefixtures("documents")
@pytest.mark.parametrize(
    "door, more, fingerprint",
    [
        (imported, {"workload": "page"}, "dd536d723ee6cf43"),
        (
            imported,
            {"workload": "page", "application": "shop", "machine": X86},
            "b47e8462c301d5c2",
        ),
        (imported, {}, "f963ad85ddb61f11"),
        (sent, {"workload": "page"}, "f14efac6d03478d1"),
        (
            sent,
            {"workload": "page", "application": "shop", "machine": X86, "history": "h"},
            "c4a270014def2a18",
        ),
        (sent, {}, ""),
    ],
)
def test_a_history_that_began_earlier_goes_on(
    door: Door, more: dict[str, Any], fingerprint: str, admin: Member
) -> None:
    assert door(admin, **more).fingerprint[:16] == fingerprint


@DOORS
@pytest.mark.parametrize("away", [timedelta(days=-365 * 80), timedelta(days=2), timedelta(days=365 * 5000)])
def test_a_time_that_cannot_be_is_refused(door: Door, away: timedelta, admin: Member) -> None:
    with pytest.raises(RequestError) as refused:
        door(admin, measured_at=timezone.now() + away)
    assert refused.value.field == "measured_at"
    assert not Run.objects.exists()


@DOORS
def test_a_figure_that_was_sent_comes_before_one_that_is_computed(door: Door, admin: Member) -> None:
    run = door(admin, own=own("sut_cpus", 3), labels={"cpus": "4"})
    assert run.metrics["sut_cpus"] == 3
    assert run.metrics["throughput_per_core_rps"] == 25


@DOORS
def test_an_own_figure_with_the_name_of_a_known_one_is_refused_and_not_left_out(door: Door, admin: Member) -> None:
    with pytest.raises(RequestError, match="'sut_cpu_ratio' is known to BenchHub"):
        door(admin, own=own("sut_cpu_ratio", 0.5))
    assert not Run.objects.exists()


@DOORS
@pytest.mark.parametrize("unit", ["µs", "k\N{NO-BREAK SPACE}req", "a\N{ZERO WIDTH SPACE}b"])
def test_a_unit_is_one_for_either_door(door: Door, unit: str, admin: Member) -> None:
    assert door(admin, own=own("age", unit=unit)).metrics["age"] == 3
    assert Metric.objects.get().unit == unit


@DOORS
@pytest.mark.usefixtures("documents")
def test_a_document_is_found_with_spaces_around_its_name(door: Door, admin: Member) -> None:
    assert str(door(admin, application=" shop ").application) == "shop v1"


@DOORS
@pytest.mark.parametrize("field", ["application", "recipe", "workload"])
def test_a_document_that_is_not_there_is_named(door: Door, field: str, admin: Member) -> None:
    with pytest.raises(RequestError, match=f"There is no {field} named 'nope'.") as refused:
        door(admin, **{field: "nope"})
    assert refused.value.field == field


@pytest.mark.parametrize(
    "store",
    [
        lambda member: store_results(
            member, [SentResult(tool="k6", failure="No login with password=hunter2 at the server.")]
        )[0],
        lambda member: import_reports(
            member, kind="jmeter", text="An error occurred: no login with password=hunter2 at the server\n"
        )[0],
    ],
    ids=["sent", "imported"],
)
def test_why_a_run_failed_is_told_without_secrets(store: Callable[[Member], Run], admin: Member) -> None:
    run = store(admin)
    assert (run.outcome, run.validity, run.fingerprint) == ("failed", "invalid", "")
    assert "password=(hidden) at the server" in run.failure
    assert not any(b"hunter2" in bytes(kept.content or b"") for kept in Artifact.objects.all())
    assert not Series.objects.exists()


@DOORS
def test_who_may_not_launch_sends_nothing_and_a_quota_counts_for_all(
    door: Door, admin: Member, make_member: MakeMember
) -> None:
    with pytest.raises(Forbidden):
        door(make_member(admin.team, Role.VIEWER))
    admin.team.quota_runs_per_day = 1
    admin.team.save()
    door(admin)
    with pytest.raises(QuotaExceeded, match="runs per day"):
        door(admin)
    assert Run.objects.count() == 1


def _someone_waits_for_a_row() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'transactionid' AND NOT granted")
        return bool(cursor.fetchone()[0])


@DOORS
@pytest.mark.django_db(transaction=True)
def test_results_that_come_at_once_through_different_doors_do_not_lock_each_other_out(
    door: Door, admin: Member
) -> None:
    """Whoever takes the team's next number keeps others waiting, so all know their figures' units before that."""
    door(admin, own=own("age", unit="s"))
    stored: list[Run] = []

    def store() -> None:
        try:
            stored.append(door(admin, own=own("age", unit="us")))
        finally:
            connection.close()

    other = threading.Thread(target=store)
    with transaction.atomic():
        learn(admin.team, [own_metric("age", "ms", "lower")])
        other.start()
        until = datetime.now(UTC) + timedelta(seconds=PATIENCE_S)
        while not _someone_waits_for_a_row():
            assert datetime.now(UTC) < until
        assert admit_runs(admin.team, 1, queued=False) == 2
    other.join(PATIENCE_S)
    assert [run.number for run in stored] == [3]
