"""Pinned baselines over the API."""

from __future__ import annotations

from experiments.models import Member, Run
from tests.api.conftest import ApiClient
from tests.frontend.conftest import MakeRun, make_run

__all__ = ["make_run"]


def test_a_run_is_named_moved_and_unnamed(api: ApiClient, admin: Member, make_run: MakeRun) -> None:
    first, second = (make_run(throughput_rps=figure).number for figure in (1000.0, 900.0))
    made = api.put("/baselines/release 11.0", {"run": first, "for_series": True})
    assert (made.status_code, made.json()["run"], made.json()["pinned_by"]) == (200, first, "ada")
    api.put("/baselines/release 11.0", {"run": second})
    assert [(one["run"], one["for_series"]) for one in api.get("/baselines").json()] == [(second, False)]
    assert api.get("/baselines/release 11.0").json()["run"] == second
    assert api.send("DELETE", "/baselines/release 11.0").status_code == 200
    assert api.send("DELETE", "/baselines/release 11.0").status_code == 404
    assert Run.objects.count() == 2


def test_a_run_that_does_not_count_or_exist_is_refused(api: ApiClient, make_run: MakeRun) -> None:
    failed = make_run(throughput_rps=1.0, outcome="failed").number
    assert api.put("/baselines/release", {"run": failed}).status_code == 409
    assert api.put("/baselines/release", {"run": 999}).status_code == 404
    assert api.put("/baselines/release", {"run": "1"}).status_code == 422
    assert api.put("/baselines/%20", {"run": make_run(throughput_rps=1.0).number}).status_code == 422
