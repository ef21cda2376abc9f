"""Seeding fills a team with runs that pages can show, and no page asks more of the database for more of them."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from experiments.keeping.demo.seeding import seed_runs
from experiments.models import Run, Series, StoredVerdict, Team
from tests.experiments.conftest import MakeMember, make_member  # noqa: F401 - fixture

FEW, MANY = 200, 2_000
OF_EXPERIMENTS = 4
"""Queries for variants, experiments, verdicts and means of baselines, which only a page that shows such runs asks."""


@pytest.fixture(scope="module")
def seeded(django_db_setup: None, django_db_blocker: Any) -> Any:
    """Two teams with few and with many runs, for all tests of this module; nothing of them is ever committed."""
    with django_db_blocker.unblock(), transaction.atomic():
        teams = {}
        for count in (FEW, MANY):
            teams[count] = Team.objects.create(slug=f"seeded-{count}", name="Seeded")
            seed_runs(teams[count], count)
        yield teams
        transaction.set_rollback(True)


def figures(team: Team) -> list[tuple[Any, ...]]:
    columns = ("number", "throughput_rps", "validity", "outcome", "labels", "recipe__name", "sut__name")
    return list(Run.objects.for_team(team).order_by("number").values_list(*columns))


@pytest.mark.django_db
def test_seeded_runs_are_marked_finished_and_of_every_sort(seeded: dict[int, Team]) -> None:
    runs = Run.objects.for_team(seeded[MANY])
    assert runs.filter(is_demo=True, state=Run.State.FINISHED).count() == runs.count() == MANY
    assert set(runs.values_list("validity", flat=True)) == {"valid", "suspect", "invalid", ""}
    assert set(runs.values_list("outcome", flat=True)) == {"succeeded", "failed", "cancelled"}
    assert runs.values("config").distinct().count() < 50
    assert Series.objects.for_team(seeded[MANY]).count() == runs.counted().values("fingerprint").distinct().count()
    assert StoredVerdict.objects.filter(experiment__team=seeded[MANY]).exists()


@pytest.mark.django_db
def test_the_same_seed_gives_the_same_figures() -> None:
    first, second, other = (Team.objects.create(slug=f"same-{at}", name="Same") for at in range(3))
    for team, seed in ((first, 1), (second, 1), (other, 2)):
        seed_runs(team, 20, seed=seed)
    assert figures(first) == figures(second) != figures(other)


@pytest.mark.django_db
def test_the_command_makes_the_team_and_adds_to_it() -> None:
    for _ in range(2):
        call_command("seed_runs", 20, team="filled", verbosity=0)
    numbers = Run.objects.filter(team__slug="filled").order_by("number").values_list("number", flat=True)
    assert list(numbers) == list(range(1, 41))


@pytest.mark.django_db
@pytest.mark.parametrize(
    "page",
    ["", "runs/", "runs/?sort=-throughput_rps", "runs/?recipe=Seeded: tomcat-default", "trends/", "experiments/"],
)
def test_a_page_of_many_runs_asks_no_more_than_one_of_few(
    seeded: dict[int, Team],
    make_member: MakeMember,  # noqa: F811 - the fixture
    page: str,
) -> None:
    few, many = (queries(make_member, team, page) for team in seeded.values())
    assert many <= few + OF_EXPERIMENTS


@pytest.mark.django_db
def test_comparing_ten_runs_asks_no_more_than_comparing_two(
    seeded: dict[int, Team],
    make_member: MakeMember,  # noqa: F811 - the fixture
) -> None:
    team = seeded[MANY]
    newest = Run.objects.for_team(team).counted().order_by("-number").values_list("number", flat=True)[:10]
    pages = ["compare/?runs=" + ",".join(str(number) for number in newest[:count]) for count in (2, 10)]
    two, ten = (queries(make_member, team, page) for page in pages)
    assert two == ten


def queries(make_member: MakeMember, team: Team, page: str) -> int:  # noqa: F811 - the fixture
    """How many queries the page costs when it is not the first one of a session."""
    member = make_member(team)
    client = Client()
    client.force_login(member.user)
    assert client.get(f"/t/{team.slug}/{page}").status_code == 200
    with CaptureQueriesContext(connection) as captured:
        client.get(f"/t/{team.slug}/{page}")
        return len(captured)
