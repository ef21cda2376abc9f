"""Pinned baselines over the API."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from experiments.models import Member, Run
from tests.experiments.api.conftest import ApiClient
from tests.frontend.conftest import MakeRun, make_run
from tests.frontend.pages.test_notes_and_baselines import in_trends

__all__ = ["make_run"]


@pytest.mark.parametrize("name", ["release 11.0", "feature/x", "release/11/hot fix", "a%2Fb", "100 % ?"])
def test_a_run_is_named_moved_and_unnamed(api: ApiClient, admin: Member, make_run: MakeRun, name: str) -> None:
    first, second = (make_run(throughput_rps=figure).number for figure in (1000.0, 900.0))
    paths = {f"/baselines/{quote(name, safe=safe)}" for safe in ("", "/")}
    for path in paths:
        made = api.put(path, {"run": first, "for_series": True})
        assert (made.status_code, made.json()["run"], made.json()["pinned_by"]) == (200, first, "ada")
        api.put(path, {"run": second})
        found = [(one["name"], one["run"], one["for_series"]) for one in api.get("/baselines").json()]
        assert found == [(name, second, False)]
        assert api.get(path).json()["run"] == second
    for status in (200, 404):
        assert api.send("DELETE", path).status_code == status
    assert Run.objects.count() == 2


def test_the_change_of_a_run_names_what_it_is_held_against(api: ApiClient, make_run: MakeRun) -> None:
    runs = [make_run(throughput_rps=figure) for figure in (1000.0, 1500.0, 750.0)]
    in_trends(runs[-1])
    first, second, third = (run.number for run in runs)

    def change(number: int) -> Any:
        found = api.get("/runs?fields=number,throughput_change").json()["items"]
        (listed,) = [run for run in found if run["number"] == number]
        assert api.get(f"/runs/{number}").json()["throughput_change"] == listed["throughput_change"]
        return listed["throughput_change"]

    assert change(first) is None
    assert change(second) == {"ratio": 0.5, "basis": "previous", "against": f"previous run #{first}"}
    assert change(third) == {"ratio": -0.5, "basis": "previous", "against": f"previous run #{second}"}
    api.put("/baselines/main", {"run": first, "for_series": True})
    assert change(third) == {"ratio": -0.25, "basis": "pinned", "against": f"main (#{first})"}
    assert change(first) is None
    assert "throughput_change" not in api.get("/runs").json()["items"][0]
    assert api.get("/runs?fields=throughput_change").json()["items"][0]["throughput_change"]["basis"] == "pinned"


def test_a_run_that_does_not_count_or_exist_is_refused(api: ApiClient, make_run: MakeRun) -> None:
    failed = make_run(throughput_rps=1.0, outcome="failed").number
    assert api.put("/baselines/release", {"run": failed}).status_code == 409
    assert api.put("/baselines/release", {"run": 999}).status_code == 404
    assert api.put("/baselines/release", {"run": "1"}).status_code == 422
    for name in ("feature//x", "feature/../x", "./x", "x/"):
        assert api.put(f"/baselines/{name}", {"run": make_run(throughput_rps=1.0).number}).json()["field"] == "name"
    assert api.put("/baselines/%20", {"run": make_run(throughput_rps=1.0).number}).status_code == 422
