"""What the pages have and programs get as well: the search box, the queue, the choice of mails."""

from __future__ import annotations

from typing import Any

from experiments.models import Member
from tests.experiments.api.conftest import ApiClient, MakeApi
from tests.experiments.api.test_auth import BODIES, NAMES


def test_everything_is_found_by_its_name_and_nothing_of_another_team(
    api: ApiClient, stock: dict[str, Any], make_api: MakeApi, other_admin: Member
) -> None:
    api.post("/experiments", {**BODIES["create_experiment"], "name": "limits of files"})
    api.post("/runs", {**NAMES, "labels": {"commit": "abc123"}})
    found = api.get("/search?q=limits").json()
    assert [one["name"] for one in found["recipes"]] == ["limits"]
    assert [one["name"] for one in found["experiments"]] == ["limits of files"]
    assert [run["number"] for run in found["runs"]] == [1]
    assert [run["number"] for run in api.get("/search?q=%231").json()["runs"]] == [1]
    assert api.get("/search?q=sut").json()["hosts"] == ["sut-1"]
    nothing = {**{kind: [] for kind in found}, "more_runs": False}
    assert make_api(other_admin, "read").get("/search?q=limits").json() == nothing
    assert api.get("/search").json() == nothing
    assert api.get(f"/search?q={'x' * 201}").json()["field"] == "q"


def test_the_queue_says_what_waits_and_why(
    api: ApiClient, stock: dict[str, Any], make_api: MakeApi, other_admin: Member
) -> None:
    for _ in range(2):
        api.post("/runs", NAMES)
    found = api.get("/queue").json()
    assert (found["running"], found["more"]) == ([], 0)
    assert [(one["run"]["number"], one["place"]) for one in found["waiting"]] == [(1, 1), (2, 2)]
    assert all(one["reason"] for one in found["waiting"])
    second = api.get("/queue?cursor=1&limit=1").json()
    assert [(one["run"]["number"], one["place"]) for one in second["waiting"]] == [(2, 2)]
    assert (second["more"], second["next_cursor"]) == (0, "")
    first = api.get("/queue?limit=1")
    assert (first.json()["more"], first.json()["next_cursor"], 'rel="next"' in first["Link"]) == (1, "1", True)
    nothing = {"running": [], "waiting": [], "more": 0, "next_cursor": ""}
    assert make_api(other_admin, "read").get("/queue").json() == nothing


def test_a_member_chooses_mails_of_their_own(api: ApiClient, admin: Member) -> None:
    admin.user.email = ""
    admin.user.save()
    assert api.get("/me/mails").json() == {"verdicts": False, "failed_runs": False, "alerts": False}
    refused = api.send("PATCH", "/me/mails", {"alerts": True})
    assert (refused.status_code, "mail address" in refused.json()["detail"]) == (422, True)
    admin.user.email = "ada@example.com"
    admin.user.save()
    wanted = {"verdicts": False, "failed_runs": False, "alerts": True}
    assert api.send("PATCH", "/me/mails", {"alerts": True}).json() == wanted
    assert api.send("PATCH", "/me/mails", {}).json() == api.get("/me/mails").json() == wanted
