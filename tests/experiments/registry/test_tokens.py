"""API tokens: shown once, stored as a hash, ended by time or by hand."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from pytest_django import Settings

from experiments.models import AuditEntry, Member, Role, Token
from experiments.registry.errors import Forbidden, RequestError
from experiments.registry.teams.tokens import authenticate, issue, revoke
from tests.experiments.conftest import MakeMember


def test_a_token_is_known_by_its_text_alone(admin: Member) -> None:
    token, text = issue(admin, name="ci", scopes=["read", "launch"])
    found = authenticate(text)
    assert found
    assert (found.token, found.member, found.member.team) == (token, admin, admin.team)
    assert token.last_used_at is None
    assert Token.objects.get().last_used_at is not None
    secret = text.split("_")[2]
    assert secret not in str(list(Token.objects.values()) + list(AuditEntry.objects.values()))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: "",
        lambda text: "bh_",
        lambda text: "bh__",
        lambda text: text[:-1],
        lambda text: text + "0",
        lambda text: text.replace("bh_", "xx_"),
        lambda text: text.upper(),
        lambda text: "bh_é_é",
        lambda text: "bh_\0_\0",
        lambda text: text.rsplit("_", 1)[0] + "_" + "0" * 48,
    ],
)
def test_a_text_that_is_not_the_token_is_nobody(admin: Member, spoil: object) -> None:
    _, text = issue(admin, name="ci", scopes=["read"])
    assert callable(spoil)
    assert authenticate(spoil(text)) is None


def test_an_expired_revoked_or_orphaned_token_is_nobody(admin: Member) -> None:
    token, text = issue(admin, name="ci", scopes=["read"])
    Token.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert authenticate(text) is None
    Token.objects.update(expires_at=timezone.now() + timedelta(days=1))
    revoke(admin, token)
    assert authenticate(text) is None
    Token.objects.update(revoked_at=None)
    assert authenticate(text)
    type(token.owner).objects.update(is_active=False)
    assert authenticate(text) is None
    type(token.owner).objects.update(is_active=True)
    assert authenticate(text)
    admin.delete()
    assert authenticate(text) is None


def test_a_token_outlives_a_change_of_the_secret_key(admin: Member, settings: Settings) -> None:
    _, text = issue(admin, name="ci", scopes=["read"])
    old, settings.SECRET_KEY = settings.SECRET_KEY, "another secret key of this installation, long enough for it"
    assert authenticate(text) is None
    settings.SECRET_KEY_FALLBACKS = [old]
    assert authenticate(text)


@pytest.mark.parametrize(
    "given, field",
    [
        ({"name": " "}, "name"),
        ({"name": "x" * 121}, "name"),
        ({"scopes": []}, "scopes"),
        ({"scopes": ["root"]}, "scopes"),
        ({"days": 0}, "days"),
        ({"days": 367}, "days"),
    ],
)
def test_a_token_that_cannot_be_names_the_field(admin: Member, given: dict[str, object], field: str) -> None:
    with pytest.raises(RequestError) as caught:
        issue(admin, **{"name": "ci", "scopes": ["read"], **given})  # type: ignore[arg-type]
    assert caught.value.field == field


def test_nobody_gives_a_scope_above_their_role(admin: Member, make_member: MakeMember) -> None:
    launcher = make_member(admin.team, Role.LAUNCHER)
    issue(launcher, name="ci", scopes=["read", "launch"])
    for scope in ("write", "admin"):
        with pytest.raises(Forbidden):
            issue(launcher, name="ci", scopes=[scope])


def test_a_token_is_revoked_by_its_creator_or_an_admin(
    admin: Member, other_admin: Member, make_member: MakeMember
) -> None:
    launcher, colleague = make_member(admin.team, Role.LAUNCHER), make_member(admin.team, Role.EDITOR)
    token, _ = issue(launcher, name="ci", scopes=["read"])
    for stranger in (colleague, other_admin):
        with pytest.raises(Forbidden):
            revoke(stranger, token)
    revoke(admin, token)
    revoke(launcher, token)
    assert AuditEntry.objects.filter(action="token.revoke").count() == 1
