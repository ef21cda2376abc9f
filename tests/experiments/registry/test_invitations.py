"""Invitations: one seat, seven days, taken back at will; and the other ways in and out of a team."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.utils import timezone
from pytest_django import Settings

from experiments.models import AuditEntry, Invitation, Member, Role, Team
from experiments.registry.errors import Conflict, Forbidden, NotFound, RequestError
from experiments.registry.teams.founding import change_team, found_team
from experiments.registry.teams.group_rules import ROLES, GroupRule, read_rules
from experiments.registry.teams.groups import follow_groups
from experiments.registry.teams.invitations import accept, find, invite, open_invitations, resend, revoke_invitation
from experiments.registry.teams.members import add_member, add_service, leave, remove_member, set_role
from tests.experiments.conftest import MakeMember


def text_of(link: str) -> str:
    return link.rstrip("/").rsplit("/", 1)[1]


def account(name: str = "grace") -> User:
    return User.objects.create_user(name)


def test_a_link_lets_one_person_in_with_its_role(admin: Member) -> None:
    asked = invite(admin, "editor")
    text, user, second = text_of(asked.link), account(), account("late")
    assert find(text) == asked.invitation
    member = accept(user, text)
    assert (member.team, member.role) == (admin.team, Role.EDITOR)
    assert find(text) is None
    with pytest.raises(NotFound):
        accept(second, text)
    assert list(AuditEntry.objects.values_list("action", "actor__username")) == [
        ("invitation.send", "ada"),
        ("invitation.accept", "grace"),
    ]


def test_the_secret_of_a_link_is_stored_nowhere(admin: Member) -> None:
    secret = text_of(invite(admin, "viewer").link).removeprefix("bh_invitation_")
    assert len(secret) >= 43  # 256 bits
    assert secret not in str([*Invitation.objects.values(), *AuditEntry.objects.values()])


def test_an_invitation_by_mail_shows_its_link_to_nobody_else(admin: Member) -> None:
    asked = invite(admin, "launcher", " grace@example.org ")
    assert (asked.link, asked.problem) == ("", "")
    [sent] = mail.outbox
    assert sent.to == ["grace@example.org"]
    assert "Performance" in sent.subject
    link = next(line for line in sent.body.splitlines() if "/invitations/" in line)
    assert find(text_of(link)) == asked.invitation


def close_by_time(admin: Member, invitation: Invitation) -> None:
    Invitation.objects.filter(pk=invitation.pk).update(expires_at=timezone.now() - timedelta(seconds=1))


@pytest.mark.parametrize(
    "close",
    [
        close_by_time,
        revoke_invitation,
        resend,  # a new link ends the old one
        lambda admin, invitation: set_role(admin, admin, "viewer"),  # its admin is none any more
        lambda admin, invitation: leave(admin),
    ],
)
def test_an_invitation_that_is_not_open_any_more_lets_nobody_in(
    admin: Member, make_member: MakeMember, close: Callable[[Member, Invitation], object]
) -> None:
    make_member(admin.team, Role.ADMIN)
    asked = invite(admin, "viewer")
    close(admin, asked.invitation)
    assert find(text_of(asked.link)) is None
    with pytest.raises(NotFound):
        accept(account(), text_of(asked.link))


@pytest.mark.parametrize("text", ["", "x", "bh_invitation_", "bh_invitation_\0", "bh_invitation_\ud800", "é"])
def test_a_text_that_is_no_link_finds_nothing(admin: Member, text: str) -> None:
    invite(admin, "viewer")
    assert find(text) is None


def test_who_belongs_to_the_team_does_not_use_an_invitation_up(admin: Member) -> None:
    asked = invite(admin, "viewer")
    with pytest.raises(Conflict):
        accept(admin.user, text_of(asked.link))
    assert find(text_of(asked.link)) is not None


def test_only_an_admin_invites_and_only_into_their_own_team(
    admin: Member, other_admin: Member, make_member: MakeMember
) -> None:
    editor, asked = make_member(admin.team, Role.EDITOR), invite(admin, "viewer")
    with pytest.raises(Forbidden):
        invite(editor, "viewer")
    for action in (resend, revoke_invitation):
        with pytest.raises(Conflict):
            action(other_admin, asked.invitation)
    assert not open_invitations(other_admin).exists()


@pytest.mark.parametrize(
    "role, email, field", [("root", "", "role"), ("viewer", "no address", "email"), ("viewer", "a@b\nc.de", "email")]
)
def test_an_invitation_that_cannot_be_names_the_field(admin: Member, role: str, email: str, field: str) -> None:
    with pytest.raises(RequestError) as caught:
        invite(admin, role, email)
    assert caught.value.field == field
    assert not Invitation.objects.exists()


def test_without_a_mail_server_only_links_are_handed_over(admin: Member, settings: Settings) -> None:
    settings.BENCHHUB_SENDS_MAIL = False
    with pytest.raises(RequestError, match="sends no mail"):
        invite(admin, "viewer", "grace@example.org")
    assert invite(admin, "viewer").link


def test_a_mail_server_that_fails_is_told_and_the_invitation_stays(admin: Member, settings: Settings) -> None:
    settings.EMAIL_BACKEND, settings.EMAIL_HOST = "django.core.mail.backends.smtp.EmailBackend", "127.0.0.1"
    settings.EMAIL_PORT = 1  # nothing listens there
    asked = invite(admin, "viewer", "grace@example.org")
    assert "could not be sent" in asked.problem
    assert asked.link == ""
    assert open_invitations(admin).get().sent_at is None


def test_the_last_admin_stays_and_a_service_is_no_admin_to_lean_on(admin: Member) -> None:
    add_service(admin, "ci", "admin")
    refused: list[Callable[[], object]] = [
        lambda: leave(admin),
        lambda: remove_member(admin, admin),
        lambda: set_role(admin, admin, "editor"),
    ]
    for attempt in refused:
        with pytest.raises(Conflict):
            attempt()
    add_member(admin, "bob", "admin")
    leave(admin)
    assert list(admin.team.members.filter(is_service=False).values_list("user__username", flat=True)) == ["bob"]


@pytest.mark.parametrize("name", ["", "CI", "a b", "-a", "a:b", "a" * 41, "é", "a\n"])
def test_a_service_has_a_plain_name(admin: Member, name: str) -> None:
    with pytest.raises(RequestError):
        add_service(admin, name, "launcher")


def test_a_service_of_another_team_cannot_be_added_as_a_member(admin: Member, other_admin: Member) -> None:
    service = add_service(other_admin, "ci", "launcher")
    with pytest.raises(RequestError):
        add_member(admin, service.user.get_username(), "viewer")


def test_nobody_signs_in_as_a_service(admin: Member) -> None:
    user = add_service(admin, "ci", "launcher").user
    assert not user.has_usable_password()
    assert user.email == ""


def test_who_may_founds_a_team_and_is_its_admin(admin: Member, settings: Settings) -> None:
    with pytest.raises(Forbidden):
        found_team(admin.user, name="Second", slug="second")
    settings.BENCHHUB_TEAM_FOUNDERS = "everyone"
    member = found_team(admin.user, name=" Second  team ", slug="second")
    assert (member.team.name, member.role) == ("Second team", Role.ADMIN)
    for name, slug in (("x", "second"), ("x", "a b"), ("x", "a" * 51), ("", "third"), ("x" * 121, "third")):
        with pytest.raises(RequestError):
            found_team(admin.user, name=name, slug=slug)
    assert Team.objects.count() == 2


def test_a_change_of_the_team_is_audited_with_before_and_after(admin: Member, make_member: MakeMember) -> None:
    change_team(admin, name="Tuning")
    change_team(admin, name="Tuning")
    entry = AuditEntry.objects.get(action="team.change")
    assert entry.before is not None
    assert entry.after is not None
    assert (entry.before["name"], entry.after["name"]) == ("Performance", "Tuning")
    with pytest.raises(Forbidden):
        change_team(make_member(admin.team, Role.EDITOR), name="Mine")


RULES = (GroupRule("perf", "perf", "launcher"), GroupRule("leads", "perf", "admin"), GroupRule("*", "others", "viewer"))


def test_memberships_follow_the_groups_of_the_identity_provider(admin: Member, other_admin: Member) -> None:
    user = account()
    seen = []
    for groups in (["perf"], ["perf", "leads"], ["leads"], ["perf"], ["no"], []):
        follow_groups(user, groups, RULES)
        seen.append(Member.objects.filter(user=user, team=admin.team).values_list("role", flat=True).first())
    assert seen == ["launcher", "admin", "admin", "launcher", None, None]
    assert Member.objects.get(user=user).team == other_admin.team
    assert AuditEntry.objects.filter(action="member.by_group", team=admin.team).count() == 4


def test_what_a_person_decided_stays_whatever_the_groups_say(admin: Member, make_member: MakeMember) -> None:
    editor = make_member(admin.team, Role.EDITOR)
    for groups in (["perf"], []):
        follow_groups(editor.user, groups, RULES)
        editor.refresh_from_db()
        assert (editor.role, editor.by_group) == (Role.EDITOR, False)


def test_the_last_admin_stays_one_whatever_the_groups_say(admin: Member) -> None:
    user = account()
    follow_groups(user, ["leads"], RULES)
    admin.delete()
    follow_groups(user, [], RULES)
    assert Member.objects.get(user=user, team__slug="perf").role == Role.ADMIN


@pytest.mark.parametrize("groups", [["staff"], []])
def test_who_a_group_made_admin_and_no_longer_does_has_no_link_in_hand_that_still_works(
    admin: Member, groups: list[str]
) -> None:
    rules = read_rules(["lab=perf:admin", "staff=perf:viewer"])
    user = account()
    follow_groups(user, ["lab"], rules)
    asked = invite(Member.objects.get(user=user), "admin")
    follow_groups(user, groups, rules)
    assert find(text_of(asked.link)) is None


def test_group_rules_are_read_from_one_line_each() -> None:
    assert list(Role.values) == list(ROLES)
    assert read_rules(["cn=perf,dc=x=perf:admin"]) == (GroupRule("cn=perf,dc=x", "perf", "admin"),)
    for entry in ("perf", "perf=perf", "=perf:admin", "perf=:admin", "perf=perf:root"):
        with pytest.raises(ValueError, match="is no rule"):
            read_rules([entry])


def test_the_audit_trail_is_append_only(admin: Member) -> None:
    invite(admin, "viewer")
    entry = AuditEntry.objects.get()
    for change in (
        entry.delete,
        entry.save,
        AuditEntry.objects.all().delete,
        lambda: AuditEntry.objects.update(action="x"),
    ):
        with pytest.raises(TypeError, match="append-only"):
            change()
    admin.team.delete()
    assert not AuditEntry.objects.exists()
