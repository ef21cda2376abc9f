"""One machine under several names: two runs are never on it at a time, and a dirty one keeps them all waiting."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments.models import Host, Member, Role, Run, Team
from experiments.running.queue.waiting import expected_of
from tests.experiments.conftest import MakeMember
from tests.faults.conftest import admin, make_member, pulls, stage, team
from tests.faults.stage import Stage, has_event, state_is
from tests.sshd import SshdHost, running_sshd

__all__ = ["admin", "make_member", "pulls", "stage", "team"]

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.faults, pytest.mark.slow]


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SshdHost, SshdHost]]:
    """Two ways into this machine, with homes of their own: nothing on the disk tells one that the other is used."""
    with running_sshd(tmp_path_factory.mktemp("a")) as a, running_sshd(tmp_path_factory.mktemp("b")) as b:
        yield a, b


def overlaps(runs: list[Run]) -> list[tuple[int, int]]:
    """Pairs of runs that had hosts at the same time."""
    for run in runs:
        run.refresh_from_db()
    return [
        (a.number, b.number)
        for a, b in itertools.combinations(sorted(runs, key=lambda run: (run.started_at, run.pk)), 2)
        if a.finished_at is None or (b.started_at is not None and b.started_at < a.finished_at)
    ]


def as_it_should_be(stage: Stage, runs: list[Run]) -> None:
    assert overlaps(runs) == []
    assert {(run.outcome, run.restore) for run in runs} == {("succeeded", "verified")}, stage.told()
    assert set(Host.objects.values_list("state", flat=True)) == {"ready"}
    assert stage.broken() == []


def test_two_rows_of_one_address_take_turns(stage: Stage, doors: tuple[SshdHost, SshdHost]) -> None:
    """Not even a first look is needed: who has the same address and port is the same machine."""
    one = stage.add_host("one", doors[0])
    other = stage.add_host("other", doors[0], root=doors[0].home / "other")
    runs = [stage.launch(one, one, measure_s=2), stage.launch(other, other, measure_s=2)]
    stage.start_worker("w", lease_s=30)
    stage.until(stage.all_finished)
    as_it_should_be(stage, runs)


def test_two_doors_of_one_machine_are_found_out_before_anything_is_changed(
    stage: Stage, doors: tuple[SshdHost, SshdHost]
) -> None:
    one, other = stage.add_host("one", doors[0]), stage.add_host("other", doors[1])
    one.hold()
    stage.start_worker("w", lease_s=30, concurrency=4)
    first = stage.launch(one, one, warm_up_s=0, measure_s=1)
    stage.until(has_event(first, "load_started", measured=True))
    second = stage.launch(other, other, warm_up_s=0, measure_s=1)

    def is_told() -> bool:
        expected = expected_of(Run.objects.get(pk=second.pk))
        return expected is not None and expected.reason == "other is the same machine as one, which run #1 uses."

    stage.until(is_told, seconds=60)
    assert (other.lines("changes"), other.lines("starts")) == ([], [])
    assert not (Path(other.host.home) / ".benchhub").exists()
    one.release()
    stage.until(stage.all_finished)
    as_it_should_be(stage, [first, second])
    assert second.attempts == 1


@pytest.fixture
def theirs(stage: Stage, make_member: MakeMember, tmp_path: Path, pulls: bool) -> Iterator[Stage]:
    """The stage of another team."""
    (tmp_path / "theirs").mkdir()
    member = make_member(Team.objects.create(slug="b", name="B"), Role.ADMIN)
    other = Stage(tmp_path / "theirs", member, stage.environment, forks_workers=True, pulls=pulls)
    yield other
    other.close()


def test_teams_that_share_a_machine_take_turns_without_reading_each_others_names(
    stage: Stage, theirs: Stage, doors: tuple[SshdHost, SshdHost], pulls: bool
) -> None:
    one, other = stage.add_host("one", doors[0]), theirs.add_host("other", doors[1])
    one.hold()
    for place in (stage, theirs) if pulls else (stage,):  # a site's worker is of one team
        place.start_worker("w", lease_s=30, concurrency=4)
    first = stage.launch(one, one, warm_up_s=0, measure_s=1)
    stage.until(has_event(first, "load_started", measured=True))
    second = theirs.launch(other, other, warm_up_s=0, measure_s=1)
    reason = "other is the same machine as a host of another team, which a run of that team uses."

    def is_told() -> bool:
        expected = expected_of(Run.objects.get(pk=second.pk))
        return expected is not None and expected.reason == reason

    stage.until(is_told, seconds=60)
    one.release()
    stage.until(stage.all_finished)
    assert overlaps([first, second]) == []
    assert {first.outcome, second.outcome} == {"succeeded"}, stage.told()
    assert one.values() == one.before
    assert other.values() == other.before


def test_nothing_starts_on_a_machine_that_is_dirty_under_another_name(
    stage: Stage, doors: tuple[SshdHost, SshdHost], admin: Member
) -> None:
    one, other = stage.add_host("one", doors[0]), stage.add_host("other", doors[1])
    stage.start_worker("w", lease_s=30)
    for actor in (one, other):
        stage.launch(actor, actor)
    stage.until(stage.all_finished)
    Host.objects.filter(pk=one.row.pk).update(state=Host.State.DIRTY, state_reason="Run #1 could not be proven undone")
    waiting, free = stage.launch(other, other), stage.launch(one, one)
    for _ in range(3):
        stage.until(state_is(free, Run.State.QUEUED))
    expected = expected_of(waiting)
    assert expected is not None
    assert expected.reason == "other is the same machine as one, which is dirty. Put that one right on its page."
    Host.objects.filter(pk=one.row.pk).update(state=Host.State.READY, state_reason="")
    stage.until(stage.all_finished)
    assert overlaps([waiting, free]) == []
