"""Many runs at once: all of them or none, within the team and the role."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from experiments.asking.launching.bulk import MAX_RUNS, archive_runs, rerun_runs, tag_runs, unarchive_runs, untag_runs
from experiments.asking.launching.choices import Choice
from experiments.asking.launching.launch import launch_run
from experiments.models import AuditEntry, Member, Role, Run, Series, Team, Trend
from experiments.registry.errors import Conflict, Forbidden, NotFound, RequestError
from experiments.registry.hosts.inventory import grant
from experiments.telling.run_list.listing import RunFilter, runs_page
from tests.experiments.conftest import MakeMember
from tests.experiments.finished import finish_next

Bulk = Callable[[Member, list[int]], list[Run]]


@pytest.fixture
def choice(stock: dict[str, Any]) -> Choice:
    return Choice(**stock)


@pytest.fixture
def three(admin: Member, choice: Choice) -> list[Run]:
    runs = [launch_run(admin, choice, tags=["nightly"]) for _ in range(3)]
    Run.objects.update(state="finished", outcome="succeeded", validity="valid")
    return runs


def tags() -> dict[int, list[str]]:
    return dict(Run.objects.values_list("number", "tags"))


def test_tags_are_added_once_and_taken_off(admin: Member, three: list[Run]) -> None:
    assert [run.number for run in tag_runs(admin, [3, 1, 1], ["good", "nightly"])] == [1, 3]
    assert tags() == {1: ["nightly", "good"], 2: ["nightly"], 3: ["nightly", "good"]}
    assert tag_runs(admin, [1, 3], ["good"]) == []
    assert [run.number for run in untag_runs(admin, [1, 2, 3], ["good"])] == [1, 3]
    assert tags() == {1: ["nightly"], 2: ["nightly"], 3: ["nightly"]}
    said = AuditEntry.objects.filter(action__in=("run.tag", "run.untag")).order_by("pk")
    assert [(one.action, one.subject) for one in said] == [
        ("run.tag", "2 runs from #1 to #3"),
        ("run.untag", "2 runs from #1 to #3"),
    ]
    assert (said[0].before, said[0].after) == (
        {"#1": ["nightly"], "#3": ["nightly"]},
        {"#1": ["nightly", "good"], "#3": ["nightly", "good"]},
    )


def test_archived_runs_leave_the_list_and_come_back(admin: Member, team: Team, three: list[Run]) -> None:
    assert [run.number for run in archive_runs(admin, [2])] == [2]
    assert archive_runs(admin, [2]) == []
    listed = [[run.number for run in runs_page(team, RunFilter(archived=archived)).rows] for archived in (False, True)]
    assert listed == [[3, 1], [2]]
    unarchive_runs(admin, [1, 2])
    assert len(runs_page(team, RunFilter()).rows) == 3
    entry = AuditEntry.objects.get(action="run.unarchive")
    assert (entry.subject, entry.before, entry.after) == (
        "run #2",
        {"archived": True, "runs": [2]},
        {"archived": False, "runs": [2]},
    )


def test_an_archived_run_leaves_the_history_and_comes_back(admin: Member, choice: Choice) -> None:
    for _ in range(2):
        launch_run(admin, choice)
        finish_next()
    trend = Trend.objects.get(metric="throughput_rps")

    def points() -> list[int]:
        trend.refresh_from_db()
        return [int(number) for number in trend.points["number"]]

    assert points() == [1, 2]
    archive_runs(admin, [2])
    series = Series.objects.get()
    assert (points(), series.last_run and series.last_run.number) == ([1], 1)
    unarchive_runs(admin, [2])
    series.refresh_from_db()
    assert (points(), series.last_run and series.last_run.number) == ([1, 2], 2)


def test_runs_are_queued_again_with_the_same_parts(admin: Member, three: list[Run]) -> None:
    again = rerun_runs(admin, [3, 1])
    assert [(run.number, run.state, run.tags) for run in again] == [
        (4, "queued", ["nightly"]),
        (5, "queued", ["nightly"]),
    ]


@pytest.mark.parametrize(
    "change, refused",
    [
        (lambda runs: None, (NotFound, "#9")),
        (lambda runs: runs.filter(number=2).update(spec=None), (Conflict, "#2")),
    ],
)
def test_a_run_that_cannot_be_run_again_is_named_and_nothing_starts(
    admin: Member, three: list[Run], change: Callable[[Any], None], refused: tuple[type[RequestError], str]
) -> None:
    change(Run.objects)
    wanted = [1, 2, 9] if refused[0] is NotFound else [1, 2]
    with pytest.raises(refused[0], match=refused[1]):
        rerun_runs(admin, wanted)
    assert Run.objects.count() == 3


def test_a_run_that_goes_on_is_not_archived_nor_are_those_beside_it(admin: Member, three: list[Run]) -> None:
    Run.objects.filter(number=2).update(state="measuring")
    with pytest.raises(Conflict, match="#2 is not finished"):
        archive_runs(admin, [1, 2])
    assert not Run.objects.filter(archived=True).exists()


EVERY: list[tuple[str, Bulk, Role]] = [
    ("tag", lambda member, numbers: tag_runs(member, numbers, ["x"]), Role.LAUNCHER),
    ("untag", lambda member, numbers: untag_runs(member, numbers, ["nightly"]), Role.LAUNCHER),
    ("archive", archive_runs, Role.EDITOR),
    ("unarchive", unarchive_runs, Role.EDITOR),
    ("rerun", rerun_runs, Role.LAUNCHER),
]


@pytest.mark.parametrize("bulk, role", [one[1:] for one in EVERY], ids=[one[0] for one in EVERY])
def test_every_action_is_of_one_team_one_role_and_a_bounded_number(
    admin: Member, other_admin: Member, make_member: MakeMember, three: list[Run], bulk: Bulk, role: Role
) -> None:
    before = list(Run.objects.order_by("pk").values())
    below = {Role.LAUNCHER: Role.VIEWER, Role.EDITOR: Role.LAUNCHER}[role]
    with pytest.raises(Forbidden):
        bulk(make_member(admin.team, below), [1])
    for numbers in ([1], [999], [0], [2**40]):
        with pytest.raises(NotFound, match=f"There is no run #{numbers[0]}."):
            bulk(other_admin, numbers)
    with pytest.raises(RequestError, match="at least one"):
        bulk(admin, [])
    with pytest.raises(RequestError, match="At most"):
        bulk(admin, list(range(1, MAX_RUNS + 2)))
    assert list(Run.objects.order_by("pk").values()) == before


def test_a_launcher_needs_the_grant_for_the_hosts(
    admin: Member, make_member: MakeMember, stock: dict[str, Any], three: list[Run]
) -> None:
    launcher = make_member(admin.team, Role.LAUNCHER)
    with pytest.raises(Forbidden, match="Run #1: You may not launch runs on sut-1"):
        rerun_runs(launcher, [1])
    for host in (stock["sut"], stock["drivers"][0]):
        grant(admin, host, launcher)
    assert len(rerun_runs(launcher, [1])) == 1


@pytest.mark.parametrize("given", [[], ["two words"], [f"t{n}" for n in range(51)]])
def test_tags_that_do_not_fit_are_refused(admin: Member, three: list[Run], given: list[str]) -> None:
    with pytest.raises(RequestError) as caught:
        tag_runs(admin, [1], given)
    assert caught.value.field == "tags"


def test_a_run_has_a_bounded_number_of_tags(admin: Member, three: list[Run]) -> None:
    with pytest.raises(RequestError, match="Run #1 would have more than 50 tags"):
        tag_runs(admin, [1], [f"t{n}" for n in range(50)])
