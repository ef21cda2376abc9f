"""Who sees which form, and who may send it."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from experiments.models import AuditEntry, Host, Member, Recipe, Role, Run, Team
from tests.experiments.conftest import MakeMember, admin, make_member, other_admin, stock, team

__all__ = ["admin", "make_member", "other_admin", "stock", "team"]

PAGES = ["runs", "recipes", "workloads", "applications", "hosts", "queue", "settings", "tokens"]
LAUNCHER_PAGES = ["new_run", "new_experiment"]


def signed_in(member: Member) -> Client:
    client = Client()
    client.force_login(member.user)
    return client


def address(name: str, team: Team, *args: Any) -> str:
    return reverse(name, args=[team.slug, *args])


@pytest.mark.parametrize("name", [*PAGES, *LAUNCHER_PAGES, "new_host", "audit"])
def test_every_page_opens_for_an_admin_with_and_without_content(
    name: str, admin: Member, stock: dict[str, Any]
) -> None:
    client = signed_in(admin)
    assert client.get(address(name, admin.team)).status_code == 200
    empty = Member.objects.create(
        team=Team.objects.create(slug="empty", name="Empty"), user=admin.user, role=Role.ADMIN
    )
    assert client.get(address(name, empty.team)).status_code == 200


@pytest.mark.parametrize("name", [*PAGES, *LAUNCHER_PAGES])
def test_another_team_is_not_found(name: str, admin: Member, other_admin: Member) -> None:
    assert signed_in(other_admin).get(address(name, admin.team)).status_code == 404


@pytest.mark.parametrize("name", PAGES)
def test_a_viewer_sees_the_page_without_its_buttons(
    name: str, team: Team, stock: dict[str, Any], make_member: MakeMember
) -> None:
    page = signed_in(make_member(team, Role.VIEWER)).get(address(name, team))
    text = page.content.decode()
    assert page.status_code == 200
    for label in ("New run", "New experiment", "Add host", "New recipe", "Invite somebody", "Cancel run"):
        assert f"{label}</" not in text


@pytest.mark.parametrize("name", [*LAUNCHER_PAGES, "new_host", "audit"])
def test_a_viewer_may_not_open_the_forms(name: str, team: Team, make_member: MakeMember) -> None:
    assert signed_in(make_member(team, Role.VIEWER)).get(address(name, team)).status_code == 403


def test_a_viewer_may_not_send_any_form(team: Team, stock: dict[str, Any], make_member: MakeMember) -> None:
    client = signed_in(make_member(team, Role.VIEWER))
    host, recipe = stock["sut"], stock["recipe"]
    actions = ["check", "approve", "drain", "undrain", "clear"]
    posts = [
        address("new_run", team),
        address("new_experiment", team),
        address("run_preview", team),
        address("dry_run", team),
        address("new_document", team, "recipes"),
        address("edit_document", team, "recipes", recipe.pk),
        address("archive_document", team, "recipes", recipe.pk),
        address("edit_host", team, host.pk),
        address("cancel_queued", team, 1),
        address("delete_demo", team),
        *(address("host_action", team, host.pk, action) for action in actions),
    ]
    before = AuditEntry.objects.count()
    assert {url: client.post(url).status_code for url in posts} == dict.fromkeys(posts, 403)
    assert AuditEntry.objects.count() == before
    assert Run.objects.count() == 0


def test_objects_of_another_team_are_not_found(other_admin: Member, stock: dict[str, Any]) -> None:
    client, mine = signed_in(other_admin), other_admin.team
    gets = [
        address("host", mine, stock["sut"].pk),
        address("profile_diff", mine, stock["sut"].pk),
        address("recipe", mine, stock["recipe"].pk),
        address("document_yaml", mine, "recipes", stock["recipe"].pk),
        address("edit_document", mine, "recipes", stock["recipe"].pk),
        address("new_experiment", mine) + "?from=1",
        address("new_run", mine) + "?from=1",
    ]
    assert {url: client.get(url).status_code for url in gets} == dict.fromkeys(gets, 404)
    posts = [
        address("host_action", mine, stock["sut"].pk, "drain"),
        address("archive_document", mine, "recipes", stock["recipe"].pk),
    ]
    assert {url: client.post(url).status_code for url in posts} == dict.fromkeys(posts, 404)
    assert Host.objects.get(pk=stock["sut"].pk).state == Host.State.READY
    assert not Recipe.objects.get(pk=stock["recipe"].pk).archived


def test_grants_are_for_admins(team: Team, stock: dict[str, Any], make_member: MakeMember) -> None:
    editor, launcher = make_member(team, Role.EDITOR), make_member(team, Role.LAUNCHER)
    url = address("host_action", team, stock["sut"].pk, "grant")
    assert signed_in(editor).post(url, {"member": launcher.pk}).status_code == 403
    assert not stock["sut"].grants.exists()


@pytest.mark.parametrize("value", ["9" * 5000, "9" * 17, "-1", "²", "1e3", "x", "\0"])
def test_nonsense_in_an_address_is_no_server_error(value: str, admin: Member, stock: dict[str, Any]) -> None:
    client = signed_in(admin)
    of = admin.team
    asked = [
        (address("new_run", of), "from"),
        (address("new_run", of), "recipe"),
        (address("new_experiment", of), "from"),
        (address("run_parameters", of), "recipe"),
        (address("new_document", of, "recipes"), "from"),
        (address("document_diff", of, "recipes", stock["recipe"].pk), "with"),
        (address("audit", of), "before"),
        (address("runs", of), "cursor"),
        (address("runs", of), "experiment"),
        (address("runs", of), "query"),
    ]
    found = {(url, name): client.get(url, {name: value}).status_code for url, name in asked}
    assert set(found.values()) <= {200, 404, 422}, found
    posted = client.post(address("run_preview", of), dict.fromkeys(("application", "recipe", "sut", "drivers"), value))
    assert posted.status_code == 200
