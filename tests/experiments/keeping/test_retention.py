"""The trash, retention with its exemptions, and what is removed for good."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import Model
from django.db.models.signals import ModelSignal, post_save
from django.utils import timezone
from django_celery_beat.models import CrontabSchedule

from agents.working.lease import handing_over
from experiments.judging.comparing.history import experiment_runs, metric_history
from experiments.judging.verdicts.judging import store_verdicts
from experiments.keeping.retention import batches, policy, removal
from experiments.keeping.retention.policy import apply_retention, forecast, set_retention
from experiments.keeping.retention.removal import remove_expired
from experiments.keeping.retention.trash import (
    KEPT_DAYS,
    restore_experiment,
    restore_runs,
    trash_experiment,
    trash_of,
    trash_runs,
)
from experiments.models import (
    Artifact,
    AuditEntry,
    CapacitySearch,
    ConfigSnapshot,
    Experiment,
    Host,
    Member,
    PinnedBaseline,
    Role,
    Run,
    Schedule,
    SearchTrial,
    ShareLink,
    Variant,
)
from experiments.registry.errors import Conflict, Forbidden, NotFound, RequestError
from experiments.tasks import clean_up
from experiments.telling.run_list.filters import RunFilter
from experiments.telling.run_list.listing import runs_page
from experiments.telling.sharing.links import revoke_link, share
from experiments.telling.sharing.subjects import Subject
from tests.experiments.conftest import MakeMember
from tests.frontend.conftest import FINGERPRINT, MakeRun, make_run

__all__ = ["make_run"]  # a fixture of the pages


def old(run: Run, days: int = 100) -> Run:
    run.finished_at = timezone.now() - timedelta(days=days)
    run.save(update_fields=["finished_at"])
    return run


def experiment_of(admin: Member, runs: list[Run], state: str = "finished") -> Experiment:
    """An experiment with two variants, the runs its repetitions in turn."""
    workload = runs[0].workload
    assert workload is not None
    experiment = Experiment.objects.create(team=admin.team, name="A question", workload=workload, state=state)
    parts: dict[str, Any] = {name: getattr(runs[0], name) for name in ("application", "recipe", "sut", "drivers")}
    variants = [
        Variant.objects.create(
            experiment=experiment,
            name=name,
            position=position,
            is_baseline=position == 0,
            **parts,
        )
        for position, name in enumerate(("base", "candidate"))
    ]
    for index, run in enumerate(runs):
        run.experiment, run.variant, run.block = experiment, variants[index % 2], index // 2
        run.save()
    return experiment


def numbers(admin: Member) -> list[int]:
    return [run.number for run in runs_page(admin.team, RunFilter()).rows]


def test_a_run_in_the_trash_is_nowhere_and_comes_back(admin: Member, make_run: MakeRun) -> None:
    first, second = make_run(throughput_rps=1000.0), make_run(throughput_rps=1010.0)
    trash_runs(admin, [first.number])

    assert numbers(admin) == [second.number]
    assert [p.number for p in metric_history(admin.team, FINGERPRINT, "throughput_rps").points] == [second.number]
    assert [(row.kind, row.key, row.runs) for row in trash_of(admin.team)] == [("run", first.number, 1)]
    with pytest.raises(NotFound):
        trash_runs(admin, [first.number])

    restore_runs(admin, [first.number])
    assert numbers(admin) == [second.number, first.number]
    (point,) = metric_history(admin.team, FINGERPRINT, "throughput_rps").points
    assert point.runs == (first.number, second.number)
    assert trash_of(admin.team) == []
    actions = AuditEntry.objects.filter(action__startswith="trash.").order_by("pk").values_list("action", "subject")
    assert list(actions) == [("trash.add", f"run #{first.number}"), ("trash.restore", f"run #{first.number}")]


def test_verdicts_are_made_again_without_it(admin: Member, make_run: MakeRun) -> None:
    runs = [make_run(throughput_rps=value) for value in (1000, 1100, 1001, 1102, 999, 1101, 1000, 1099, 1002, 1100.5)]
    experiment = experiment_of(admin, runs)
    store_verdicts(experiment, spent=True)
    verdict = experiment.verdicts.get(metric="throughput_rps")
    assert (verdict.outcome, verdict.numbers["n_b"]) == ("better", 5)

    trash_runs(admin, [run.number for run in runs[1::2]])
    verdict.refresh_from_db()
    assert (verdict.outcome, verdict.numbers["n_b"]) == ("invalid", 0)
    assert len(experiment_runs(experiment)) == 5

    restore_runs(admin, [run.number for run in runs[1::2]])
    verdict.refresh_from_db()
    assert (verdict.outcome, verdict.numbers["n_b"]) == ("better", 5)


def test_an_experiment_goes_with_its_runs_and_comes_back_with_them(
    admin: Member,
    make_run: MakeRun,
) -> None:
    runs = [make_run(throughput_rps=1000.0) for _ in range(3)]
    experiment = experiment_of(admin, runs)
    trash_runs(admin, [runs[0].number])
    trash_experiment(admin, experiment.pk)

    assert numbers(admin) == []
    assert not Experiment.objects.for_team(admin.team).exists()
    assert [(row.kind, row.runs) for row in trash_of(admin.team)] == [("experiment", 3)]
    with pytest.raises(Conflict, match="restore that"):
        restore_runs(admin, [runs[0].number])

    restore_experiment(admin, experiment.pk)
    assert numbers(admin) == [runs[2].number, runs[1].number]  # the one that went before stays
    assert [row.key for row in trash_of(admin.team)] == [runs[0].number]


def _trial(run: Run, admin: Member) -> None:
    parts = {name: getattr(run, name) for name in ("application", "recipe", "workload", "sut", "drivers")}
    search = CapacitySearch.objects.create(
        team=admin.team, name="limit", **parts, objective_metric="latency_p99_ms", objective_ms=5,
        start_low_rps=1, start_high_rps=2,
    )  # fmt: skip
    SearchTrial.objects.create(search=search, position=0, rate_rps=1, phase="bracket", run=run)


def _scheduled(run: Run, admin: Member) -> None:
    crontab = CrontabSchedule.objects.create(minute="0", hour="3")
    Schedule.objects.create(team=admin.team, name="nightly", run=run, crontab=crontab)


Use = Callable[[Run, Member], object]
IN_USE: dict[str, Use] = {
    "not finished": lambda run, _admin: Run.objects.filter(pk=run.pk).update(state="measuring"),
    "a pinned baseline": lambda run, admin: PinnedBaseline.objects.create(team=admin.team, name="release", run=run),
    "a trial of a capacity search": _trial,
    "what a schedule repeats": _scheduled,
    "needed to put a host back": lambda run, _admin: Host.objects.filter(runs=run).update(dirty_run=run),
}


@pytest.mark.parametrize("why", IN_USE)
def test_what_is_in_use_cannot_be_deleted(why: str, admin: Member, make_run: MakeRun) -> None:
    run = make_run(throughput_rps=1000.0)
    IN_USE[why](run, admin)
    with pytest.raises(Conflict, match=why):
        trash_runs(admin, [run.number])
    experiment = experiment_of(admin, [run])
    IN_USE["not finished"](run, admin)
    with pytest.raises(Conflict, match="not finished"):
        trash_experiment(admin, experiment.pk)
    assert not Run.objects.filter(trashed_at__isnull=False).exists()


@pytest.mark.parametrize("role", [Role.VIEWER, Role.LAUNCHER])
def test_below_editor_nobody_deletes(
    role: Role,
    admin: Member,
    make_member: MakeMember,
    make_run: MakeRun,
) -> None:
    run, member = make_run(throughput_rps=1000.0), make_member(admin.team, role)
    experiment = experiment_of(admin, [run])
    acts: list[Callable[[], object]] = [
        lambda: trash_runs(member, [run.number]),
        lambda: restore_runs(member, [run.number]),
        lambda: trash_experiment(member, experiment.pk),
        lambda: restore_experiment(member, experiment.pk),
        lambda: set_retention(member, 90),
    ]
    for act in acts:
        with pytest.raises(Forbidden):
            act()


def test_another_team_deletes_and_restores_nothing(
    admin: Member,
    other_admin: Member,
    make_run: MakeRun,
) -> None:
    run = make_run(throughput_rps=1000.0)
    experiment = experiment_of(admin, [run])
    for act in (lambda: trash_runs(other_admin, [run.number]), lambda: trash_experiment(other_admin, experiment.pk)):
        with pytest.raises(NotFound):
            act()
    trash_experiment(admin, experiment.pk)
    assert trash_of(other_admin.team) == []
    with pytest.raises(NotFound):
        restore_experiment(other_admin, experiment.pk)


def _shared(run: Run, admin: Member) -> ShareLink:
    return share(admin, Subject(ShareLink.Kind.RUN, (run.number,))).link


def _expired_share(run: Run, admin: Member) -> None:
    ShareLink.objects.filter(pk=_shared(run, admin).pk).update(expires_at=timezone.now() - timedelta(seconds=1))


def _judged(run: Run, admin: Member) -> None:
    store_verdicts(experiment_of(admin, [run]), spent=True)


def _set(**fields: Any) -> Use:
    return lambda run, _admin: Run.objects.filter(pk=run.pk).update(**fields)


CASES: dict[str, tuple[Use, bool]] = {
    "nothing speaks for it": (lambda _run, _admin: None, True),
    "it is younger": (_set(finished_at=timezone.now()), False),
    "it failed": (_set(outcome="failed", validity="", throughput_rps=None), True),
    "it is tagged": (_set(tags=["keep"]), False),
    "it has a label": (_set(labels={"branch": "main"}), True),
    "it is archived": (_set(archived=True), False),
    "it is a pinned baseline": (IN_USE["a pinned baseline"], False),
    "it is a trial of a search": (_trial, False),
    "a schedule repeats it": (_scheduled, False),
    "it is shared": (_shared, False),
    "its link was revoked": (lambda run, admin: revoke_link(admin, _shared(run, admin).pk), True),
    "its link is expired": (_expired_share, True),
    "its experiment has a verdict": (_judged, False),
    "its experiment has none": (lambda run, admin: experiment_of(admin, [run], "cancelled"), True),
    "its experiment goes on": (lambda run, admin: experiment_of(admin, [run], "running"), False),
    "its experiment is paused": (lambda run, admin: experiment_of(admin, [run], "paused"), False),
    "a host waits to be put back": (IN_USE["needed to put a host back"], False),
    "it is in the trash already": (lambda run, admin: trash_runs(admin, [run.number]), False),
}


@pytest.mark.parametrize("case", CASES)
def test_retention_takes_what_nothing_exempts(case: str, admin: Member, make_run: MakeRun) -> None:
    run = old(make_run(throughput_rps=1000.0))
    arrange, goes = CASES[case]
    arrange(run, admin)
    before = Run.objects.get(pk=run.pk).trashed_at
    assert forecast(admin.team, 90).runs == int(goes)
    assert apply_retention() == 0  # not switched on
    set_retention(admin, 90)
    assert apply_retention() == int(goes)
    assert (Run.objects.get(pk=run.pk).trashed_at != before) is goes


@pytest.fixture
def batches_of_two(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(policy, "MOST_AT_ONCE", 2)
    monkeypatch.setattr(removal, "BATCH", 2)
    yield
    handing_over.clear()


@pytest.fixture
def overdue(admin: Member, other_admin: Member, make_run: MakeRun, batches_of_two: None) -> list[Run]:
    """Five runs of one team and two of another; both have a retention."""
    runs = [old(make_run(throughput_rps=1000.0)) for _ in range(7)]
    Run.objects.filter(pk__in=[run.pk for run in runs[5:]]).update(team=other_admin.team)
    for member in (admin, other_admin):
        set_retention(member, 90)
    return runs


def test_a_round_takes_batch_after_batch_of_each_team_until_nothing_is_left(overdue: list[Run]) -> None:
    assert apply_retention() == 7
    sizes = [entry.after["runs"] for entry in AuditEntry.objects.filter(action="retention.trash")]
    assert max(map(len, sizes)) == 2, "each batch is a transaction of its own"
    Run.objects.update(trashed_at=timezone.now() - timedelta(days=KEPT_DAYS, hours=1))
    assert (remove_expired(), Run.objects.count()) == (7, 0)


def test_a_round_ends_with_its_time(overdue: list[Run], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "MOST_S", 0.0)
    assert apply_retention() == 0
    Run.objects.update(trashed_at=timezone.now() - timedelta(days=KEPT_DAYS, hours=1))
    assert (remove_expired(), Run.objects.count()) == (0, 7)


def test_a_worker_that_is_told_to_stop_ends_the_round_after_the_batch_that_it_is_at(overdue: list[Run]) -> None:
    def stop(**_: object) -> None:
        handing_over.set()

    with connected(post_save, stop, AuditEntry):
        clean_up()
    assert Run.objects.filter(trashed_at__isnull=False).count() == 2
    Run.objects.update(trashed_at=timezone.now() - timedelta(days=KEPT_DAYS, hours=1))
    clean_up()
    assert Run.objects.count() == 7


def test_a_retention_that_is_switched_off_while_a_round_goes_on_takes_no_further_run(
    overdue: list[Run], admin: Member, other_admin: Member
) -> None:
    def switch_off(instance: AuditEntry, **_: object) -> None:
        if instance.action == "retention.trash":
            for member in (admin, other_admin):
                set_retention(member, None)

    with connected(post_save, switch_off, AuditEntry):
        assert apply_retention() == 2


def test_a_run_whose_series_cannot_be_made_again_is_deleted_and_keeps_nothing_else_from_its_turn(
    admin: Member, make_run: MakeRun
) -> None:
    first, second, newest, gone = (make_run(throughput_rps=1000.0) for _ in range(4))
    of_another_version = {**(newest.spec or {}), "of_another_version": 1}
    old(gone)
    Run.objects.filter(pk=gone.pk).update(trashed_at=timezone.now() - timedelta(days=KEPT_DAYS, hours=1))
    for run in (first, second, newest):  # of loads of their own, which make no series when they end
        Run.objects.filter(pk=run.pk).update(fingerprint="f" * 40, spec=of_another_version)
    assert trash_runs(admin, [first.number])
    old(second)
    set_retention(admin, 90)
    clean_up()
    assert [*Run.objects.filter(trashed_at=None)] == [newest]
    assert not Run.objects.filter(pk=gone.pk).exists()


def test_a_team_whose_retention_fails_keeps_no_other_team_and_no_other_step_from_its_turn(
    overdue: list[Run], admin: Member, make_run: MakeRun
) -> None:
    def fail(instance: AuditEntry, **_: object) -> None:
        if instance.action == "retention.trash" and instance.team_id == admin.team_id:
            raise RuntimeError("a mistake of ours")

    gone = make_run(throughput_rps=1000.0)
    Run.objects.filter(pk=gone.pk).update(trashed_at=timezone.now() - timedelta(days=KEPT_DAYS, hours=1))
    with connected(post_save, fail, AuditEntry):
        clean_up()
    assert {run.team_id == admin.team_id for run in Run.objects.filter(trashed_at=None)} == {True}
    assert not Run.objects.filter(pk=gone.pk).exists()


@contextmanager
def connected(signal: ModelSignal, receiver: Callable[..., None], sender: type[Model]) -> Iterator[None]:
    signal.connect(receiver, sender=sender)
    try:
        yield
    finally:
        signal.disconnect(receiver, sender=sender)


def test_the_forecast_counts_and_changes_nothing(admin: Member, make_run: MakeRun) -> None:
    plain, tagged = old(make_run(throughput_rps=1.0)), old(make_run(throughput_rps=1.0))
    _set(tags=["x"])(tagged, admin)
    Artifact.objects.create(run=plain, name="out", sha256="0", content=b"12345")
    found = forecast(admin.team, 90)
    assert (found.runs, found.artifact_bytes, dict(found.kept)) == (1, 5, {"tagged": 1})
    assert found.oldest_at == found.newest_at
    assert not Run.objects.filter(trashed_at__isnull=False).exists()
    assert forecast(admin.team, 365).runs == 0
    for days in (6, 3661):
        with pytest.raises(RequestError, match="7 to 3660 days"):
            set_retention(admin, days)


def test_switching_retention_is_audited(admin: Member) -> None:
    set_retention(admin, 90)
    set_retention(admin, 90)
    set_retention(admin, None)
    entries = AuditEntry.objects.filter(action="retention.set").order_by("pk").values_list("before", "after")
    assert list(entries) == [
        ({"retention_days": "for ever"}, {"retention_days": 90}),
        ({"retention_days": 90}, {"retention_days": "for ever"}),
    ]


def test_after_30_days_it_is_removed_for_good_and_its_number_stays_free(
    admin: Member,
    make_run: MakeRun,
) -> None:
    runs = [make_run(throughput_rps=1000.0) for _ in range(4)]
    experiment = experiment_of(admin, runs[:2])
    trash_experiment(admin, experiment.pk)
    trash_runs(admin, [runs[2].number])
    ago = timezone.now() - timedelta(days=KEPT_DAYS, hours=1)
    Run.objects.filter(pk__in=[run.pk for run in runs[:2]]).update(trashed_at=ago)
    Experiment.objects.filter(pk=experiment.pk).update(trashed_at=ago)

    assert remove_expired() == 2
    assert remove_expired() == 0
    assert set(Run.objects.values_list("number", flat=True)) == {runs[2].number, runs[3].number}
    assert not Experiment.objects.exists()
    assert ConfigSnapshot.objects.count() == 2
    entries = AuditEntry.objects.filter(action="trash.remove").order_by("pk").values_list("actor", "subject", "before")
    assert list(entries) == [
        (None, "2 runs", {"runs": [run.number for run in runs[:2]]}),
        (None, "experiment A question", {"experiment": experiment.pk}),
    ]
    assert make_run().number == runs[3].number + 1
