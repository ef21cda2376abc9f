"""Saved views and notes over the API: read, written, shared, and never over what somebody else has changed since."""

from __future__ import annotations

from typing import Any

import pytest

from experiments.models import AuditEntry, Member, Role, Run, SavedView
from tests.experiments.api.conftest import ApiClient, MakeApi
from tests.experiments.api.test_auth import BODIES, NAMES
from tests.experiments.conftest import MakeMember


def test_a_view_is_saved_changed_shared_and_deleted(api: ApiClient, admin: Member) -> None:
    made = api.post("/views", {"name": "Best", "query": "validity=valid&cursor=x&sort=-throughput_rps"})
    assert made.status_code == 201
    view = made.json()
    assert (view["query"], view["owner"], view["shared"]) == ("validity=valid&sort=-throughput_rps", "ada", False)
    path = f"/views/{view['id']}"
    assert api.send("PATCH", path, {"shared": True, "is_default": True}).json()["is_default"]
    assert api.send("PATCH", path, {"name": "Best runs"}).json()["name"] == "Best runs"
    assert [one["name"] for one in api.get("/views").json()] == ["Best runs"]
    assert (
        api.get(path).json()["url"] == f"http://localhost/t/{admin.team.slug}/runs/?{view['query']}&view={view['id']}"
    )
    assert api.send("DELETE", path).json()["name"] == "Best runs"
    assert api.get(path).status_code == 404
    said = AuditEntry.objects.filter(subject__startswith="view ").order_by("pk").values_list("action", flat=True)
    assert list(said) == ["view.save", "view.save", "view.delete"]  # a private one is nobody's business


def test_a_view_belongs_to_who_made_it(
    api: ApiClient, admin: Member, make_member: MakeMember, make_api: MakeApi
) -> None:
    launcher = make_api(make_member(admin.team, Role.LAUNCHER))
    shared = api.post("/views", {"name": "a", "query": "sut=sut-1", "shared": True}).json()["id"]
    private = api.post("/views", {"name": "b"}).json()["id"]
    assert [one["id"] for one in launcher.get("/views").json()] == [shared]
    assert launcher.send("PATCH", f"/views/{shared}", {"name": "c"}).status_code == 403
    assert launcher.send("PATCH", f"/views/{shared}", {"is_default": True}).status_code == 200
    assert launcher.send("DELETE", f"/views/{private}").status_code == 404
    assert api.send("PATCH", f"/views/{private}", {"name": "a"}).status_code == 409


@pytest.mark.parametrize(
    "body, field",
    [
        ({"name": ""}, "name"),
        ({"name": "x" * 61}, "name"),
        ({"name": "x", "query": "sort=colour"}, "sort"),
        ({"name": "x", "query": "experiment=none"}, "experiment"),
        ({"name": "x", "query": "recipee=limits"}, "query"),
        ({"name": "x", "shared": "yes"}, "shared"),
        ({"name": "x", "owner": "eve"}, "owner"),
    ],
)
def test_a_view_that_cannot_be_is_refused_by_its_field(api: ApiClient, body: dict[str, Any], field: str) -> None:
    answer = api.post("/views", body)
    assert (answer.status_code, answer.json()["field"]) == (422, field), answer.content
    assert not SavedView.objects.exists()


def test_notes_are_read_and_written_as_markdown_and_html(api: ApiClient, stock: dict[str, Any]) -> None:
    api.post("/runs", NAMES)
    experiment = api.post("/experiments", BODIES["create_experiment"]).json()["id"]
    for path in ("/runs/1/notes", f"/experiments/{experiment}/notes"):
        assert api.get(path).json() == {"text": "", "html": "", "written_by": None, "written_at": None}
        written = api.put(path, {"text": "**slow** disk <script>x</script>"}).json()
        assert written == api.get(path).json()
        assert written["html"] == "<p><strong>slow</strong> disk &lt;script&gt;x&lt;/script&gt;</p>\n"
        assert written["written_by"] == "ada"
        assert api.put(path, {"text": "x" * 10_001}).json()["field"] == "text"
    entries = AuditEntry.objects.filter(action="notes.write").values_list("before", "after")
    assert list(entries) == [({"notes": ""}, {"notes": "**slow** disk <script>x</script>"})] * 2


def test_views_and_notes_are_changed_only_as_they_were_seen(api: ApiClient, stock: dict[str, Any]) -> None:
    api.post("/runs", NAMES)
    view = f"/views/{api.post('/views', {'name': 'a'}).json()['id']}"
    changes = [("PUT", "/runs/1/notes", {"text": "mine"}), ("PATCH", view, {"name": "b"}), ("DELETE", view, None)]
    for method, path, body in changes:
        seen = api.get(path)["ETag"]
        assert api.get(path, headers={"If-None-Match": seen}).status_code == 304
        assert api.send(method, path, body, headers={"If-Match": '"other"'}).status_code == 412
        done = api.send(method, path, body, headers={"If-Match": seen})
        assert (done.status_code, method == "DELETE" or done["ETag"] == api.get(path)["ETag"]) == (200, True)
    assert Run.objects.get().notes == "mine"
