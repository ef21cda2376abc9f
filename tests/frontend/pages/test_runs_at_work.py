"""Saved views of the list of runs, and what is done to several runs at once."""

from __future__ import annotations

import re
from typing import Any

import pytest

from experiments.models import AuditEntry, Member, Role, Run, SavedView
from tests.experiments.conftest import MakeMember, admin, make_member, other_admin, stock, team
from tests.frontend.flat import flat
from tests.frontend.pages.test_runs import add_runs
from tests.frontend.test_forms_access import address, signed_in

__all__ = ["admin", "make_member", "other_admin", "stock", "team"]

QUERY = "validity=valid&sort=-throughput_rps&columns=sut&columns=throughput_rps"


def saved(member: Member, name: str = "Best", **more: Any) -> SavedView:
    given = {"name": name, "query": f"{QUERY}&cursor=abc&view=7", **more}
    answer = signed_in(member).post(address("new_view", member.team), given)
    view: SavedView = SavedView.objects.get(owner=member.user, name=name)
    assert answer.headers["Location"] == f"{address('runs', member.team)}?{view.query}&view={view.pk}"
    return view


def test_a_view_keeps_filter_order_and_columns_and_is_a_chip_above_the_list(admin: Member) -> None:
    view = saved(admin)
    assert view.query == QUERY  # neither the page of the list nor which view it came from
    page = flat(signed_in(admin).get(f"{address('runs', admin.team)}?{view.query}&view={view.pk}").content.decode())
    assert re.search(rf'href="\?[^"]*view={view.pk}" aria-current="true" title="Yours alone">Best', page)
    assert "Save changes" not in page
    changed = signed_in(admin).get(f"{address('runs', admin.team)}?validity=invalid&view={view.pk}").content.decode()
    assert "Save changes to Best" in changed


def test_a_private_view_is_its_owners_alone_and_a_shared_one_everybodys_to_use(
    admin: Member, make_member: MakeMember
) -> None:
    private, shared = saved(admin, "Mine"), saved(admin, "Ours", shared="on")
    viewer = make_member(admin.team, Role.VIEWER)
    page = signed_in(viewer).get(address("runs", admin.team)).content.decode()
    assert ("Ours" in page, "Mine" in page) == (True, False)

    def change(view: SavedView, action: str) -> int:
        given = {"action": action, "name": "x", "query": ""}
        return signed_in(viewer).post(address("change_view", admin.team, view.pk), given).status_code

    assert change(private, "delete") == 404
    assert change(shared, "delete") == 403
    assert change(shared, "default") == 302
    assert SavedView.objects.count() == 2
    assert (
        signed_in(viewer).post(address("new_view", admin.team), {"name": "v", "query": "", "shared": "on"}).status_code
        == 403
    )
    saved(viewer, "Own")


def test_runs_opens_with_the_default_view_until_it_is_deleted(admin: Member) -> None:
    view = saved(admin, default="on")
    client, runs = signed_in(admin), address("runs", admin.team)
    assert client.get(runs).headers["Location"] == f"{runs}?{QUERY}&view={view.pk}"
    assert client.get(f"{runs}?view=all").status_code == 200
    client.post(address("change_view", admin.team, view.pk), {"action": "delete", "query": ""})
    assert client.get(runs).status_code == 200


def test_a_view_is_renamed_shared_and_changed_and_what_the_team_sees_is_audited(admin: Member) -> None:
    view = saved(admin)
    saved(admin, "Other")
    assert not AuditEntry.objects.exists()
    client, url = signed_in(admin), address("change_view", admin.team, view.pk)
    client.post(url, {"action": "rename", "name": "Other", "query": QUERY})  # there is one of this name
    client.post(url, {"action": "rename", "name": "Top", "shared": "on", "query": QUERY})
    client.post(url, {"action": "save", "query": "outcome=failed"})
    client.post(url, {"action": "save", "query": "outcome=nonsense"})  # the list would refuse it
    view.refresh_from_db()
    assert (view.name, view.query, view.shared) == ("Top", "outcome=failed", True)
    assert [entry.action for entry in AuditEntry.objects.all()] == ["view.save", "view.save"]


def bulk(member: Member, action: str, *numbers: int, **more: str) -> Any:
    client = signed_in(member)
    given = {"action": action, "runs": [str(n) for n in numbers], "back": "validity=valid", **more}
    answer = client.post(address("bulk_runs", member.team), given)
    if answer.status_code == 302 and "compare" not in answer.headers["Location"]:
        assert answer.headers["Location"] == f"{address('runs', member.team)}?validity=valid"
        answer = client.get(answer.headers["Location"])
    return answer


def test_selected_runs_are_tagged_and_the_sentence_offers_to_undo_it(admin: Member, stock: dict[str, Any]) -> None:
    add_runs(admin, stock, 3)
    page = flat(bulk(admin, "tag", 1, 2, tags="release").content.decode())
    assert "2 runs tagged release." in page
    assert list(Run.objects.filter(tags=["release"]).order_by("number").values_list("number", flat=True)) == [1, 2]
    undo = re.search(r'<form class="inline" method="post" action="[^"]*bulk">(.*?)</form>', page, re.S)
    assert undo
    fields = dict(re.findall(r'name="(action|tags|back)" value="([^"]*)"', undo[1]))
    assert fields == {"action": "untag", "tags": "release", "back": "validity=valid"}
    assert re.findall(r'name="runs" value="(\d+)"', undo[1]) == ["1", "2"]
    bulk(admin, "untag", 1, 2, tags="release")
    assert not Run.objects.exclude(tags=[]).exists()


@pytest.mark.parametrize(
    ("action", "more", "said"),
    [
        ("archive", {}, "2 runs archived."),
        ("rerun", {}, "At most"),
        ("tag", {}, "Give at least one tag."),
        ("tag", {"tags": "a:b"}, "must be one word"),
        ("sell", {}, "Choose what to do"),
        ("unarchive", {}, "Nothing to change"),
    ],
)
def test_what_was_done_or_could_not_be_is_said(
    admin: Member, stock: dict[str, Any], action: str, more: dict[str, str], said: str
) -> None:
    add_runs(admin, stock, 2)
    numbers = (1, 2) if action != "rerun" else tuple(range(1, 600))
    assert said in bulk(admin, action, *numbers, **more).content.decode()


def test_bulk_work_needs_the_roles_and_the_teams_own_runs(
    admin: Member, other_admin: Member, stock: dict[str, Any], make_member: MakeMember
) -> None:
    add_runs(admin, stock, 2)
    viewer, launcher = make_member(admin.team, Role.VIEWER), make_member(admin.team, Role.LAUNCHER)
    assert [bulk(viewer, action, 1, tags="a").status_code for action in ("tag", "archive", "rerun")] == [403] * 3
    assert bulk(launcher, "archive", 1).status_code == 403
    assert bulk(launcher, "tag", 1, tags="a").status_code == 200
    assert bulk(other_admin, "archive", 1).status_code == 404
    assert bulk(admin, "compare", 2, 1).headers["Location"] == f"{address('compare', admin.team)}?runs=1,2"
