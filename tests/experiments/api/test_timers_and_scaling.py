"""Tables of timers and scaling over the API."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from experiments.asking.launching.choices import Choice
from experiments.asking.launching.launch import launch_run
from experiments.models import Member, Role, Run
from tests.experiments.api.conftest import ApiClient, MakeApi
from tests.experiments.conftest import MakeMember
from tests.experiments.finished import finish_next
from tests.experiments.judging.test_scaling import sweep

TABLE = (Path(__file__).parents[2] / "agents/cases/timer_tables/timers-container.txt").read_text()
HEADER = "Action,Total (ms),Count\n"


@pytest.fixture
def run(admin: Member, stock: dict[str, Any]) -> Run:
    launch_run(admin, Choice(**stock))
    return finish_next()


def test_a_table_is_added_to_a_run_and_compared_over_its_cpu_counts(api: ApiClient, run: Run) -> None:
    made = api.post(f"/runs/{run.number}/timers", {"name": "container", "text": TABLE})
    assert made.status_code == 201, made.content
    assert len(made.json()["rows"]) == 27
    assert [row["action"] for row in made.json()["rows"] if row["average_differs"]] == ["Dispatch_Remote"]
    assert api.get(f"/runs/{run.number}/timers").json()[0]["name"] == "container"
    assert run.artifacts.filter(name="timers-container.txt").exists()
    (found,) = api.get(f"/timers?runs={run.number}").json()
    assert found["columns"] == ["1 CPU", "2 CPUs", "4 CPUs"]
    assert [row["action"] for row in found["rows"]][:2] == ["ResourceCommit", "CMP"]
    assert found["rows"][0]["growth_ratio"] == pytest.approx(27.646 / 17.4414, rel=1e-4)
    assert found["sentence"].startswith("From 1 CPU to 4 CPUs ResourceCommit grew most: 17.4 → 27.6 ms per call")
    assert found["differing"] == ["Dispatch_Remote (1 CPU): 1.83 ms printed, 0.545 ms computed"]


def test_tables_of_several_runs_stand_side_by_side(api: ApiClient, admin: Member, stock: dict[str, Any]) -> None:
    for cpus, total in ((1, 100), (4, 300)):
        launch_run(admin, Choice(**stock))
        run = finish_next()
        Run.objects.filter(pk=run.pk).update(metrics={"sut_cpus": cpus})
        assert (
            api.post(f"/runs/{run.number}/timers", {"name": "t", "text": f"{HEADER}read,{total},50\n"}).status_code
            == 201
        )
    (found,) = api.get("/timers?runs=2,1").json()
    assert found["columns"] == ["#1, 1 CPU", "#2, 4 CPUs"]
    assert found["rows"][0]["growth_ratio"] == 3


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({"name": "t", "text": "nothing"}, 422, "text"),
        ({"name": "a/b", "text": TABLE}, 422, "name"),
        ({"name": "twice", "text": TABLE}, 409, "name"),
    ],
)
def test_what_cannot_be_added_is_said(api: ApiClient, run: Run, body: dict[str, str], status: int, field: str) -> None:
    api.post(f"/runs/{run.number}/timers", {"name": "twice", "text": TABLE})
    refused = api.post(f"/runs/{run.number}/timers", body)
    assert (refused.status_code, refused.json()["field"]) == (status, field)


def test_timers_of_another_team_do_not_exist_and_viewers_add_none(
    api: ApiClient, run: Run, make_api: MakeApi, other_admin: Member, admin: Member, make_member: MakeMember
) -> None:
    stranger = make_api(other_admin)
    assert stranger.get(f"/runs/{run.number}/timers").status_code == 404
    assert stranger.post(f"/runs/{run.number}/timers", {"name": "t", "text": TABLE}).status_code == 404
    assert stranger.get(f"/timers?runs={run.number}").status_code == 422
    viewer = make_api(make_member(admin.team, Role.VIEWER), "read")
    assert viewer.post(f"/runs/{run.number}/timers", {"name": "t", "text": TABLE}).status_code == 403


def test_the_scaling_of_an_experiment_with_its_law(api: ApiClient, admin: Member, stock: dict[str, Any]) -> None:
    experiment = sweep(admin, stock, {"0": [100.5], "0-1": [190.5], "0-3": [340.5], "0-7": [520.5]})
    found = api.get(f"/experiments/{experiment.pk}/scaling?total_cpus=8").json()
    assert [point["cpus"] for point in found["points"]] == [1, 2, 4, 8]
    assert found["law"]["kind"] in ("usl", "amdahl")
    assert found["law"]["gamma_rps"]["ci95"] is not None
    assert found["advice"]["instances"] * found["advice"]["cpus_each"] == 8
    assert found["sentences"]


def test_an_experiment_on_one_cpu_count_has_no_scaling(api: ApiClient, admin: Member, stock: dict[str, Any]) -> None:
    experiment = sweep(admin, stock, {"0": [100.5]})
    assert api.get(f"/experiments/{experiment.pk}/scaling").status_code == 409
    assert api.get("/experiments/999999/scaling").status_code == 404
