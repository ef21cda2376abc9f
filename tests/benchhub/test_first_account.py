"""What a newcomer is told before the first account is there, and before a password is refused."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.password_validation import (
    MinimumLengthValidator,
    get_default_password_validators,
    validate_password,
)
from django.core.exceptions import ValidationError
from django.test import Client

from benchhub.environment import own_command
from experiments.models import Member
from experiments.registry.teams.first_account import PASSWORD_RULE, how_to_make_the_first_account
from frontend.pages.account import forms
from tests.experiments.conftest import admin, make_member, team

__all__ = ["admin", "make_member", "team"]  # fixtures


def test_the_sign_in_page_says_how_the_first_account_is_made(db: None) -> None:
    page = Client().get("/accounts/login/").content.decode()
    assert f"<code>{how_to_make_the_first_account()}</code>" in page
    assert PASSWORD_RULE in page


def test_it_says_nothing_of_it_once_there_is_one(admin: Member) -> None:
    assert how_to_make_the_first_account() == ""
    page = Client().get("/accounts/login/").content.decode()
    assert "createadmin" not in page
    assert "no account here" not in page


@pytest.mark.parametrize(
    ("environment", "files", "command"),
    [
        ({}, ["pyproject.toml"], "python manage.py"),
        ({}, [], "benchhub"),
        (
            {"BENCHHUB_COMMAND": "docker compose exec web python manage.py"},
            [],
            "docker compose exec web python manage.py",
        ),
    ],
    ids=["a checkout", "from pip", "as the installation says"],
)
def test_the_command_is_the_one_of_this_installation(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], files: list[str], command: str
) -> None:
    for name in files:
        (tmp_path / name).touch()
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert own_command(tmp_path) == command


def test_a_checkout_names_the_python_of_its_own_environment(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.setattr("sys.prefix", str(tmp_path / ".venv"))
    assert own_command(tmp_path) == ".venv/bin/python manage.py"


@pytest.mark.parametrize(
    "form", [forms.SignUpForm, forms.ChangePasswordForm, forms.SetPasswordForm, forms.NewPasswordForm]
)
def test_every_form_with_a_new_password_shows_the_rule_first(form: Any) -> None:
    assert form().fields["password1"].help_text == PASSWORD_RULE


def test_the_rule_says_what_is_refused(admin: Member) -> None:
    (length,) = (one.min_length for one in get_default_password_validators() if isinstance(one, MinimumLengthValidator))
    assert f"At least {length} characters" in PASSWORD_RULE
    validate_password("x7-gravel-lamp", admin.user)
    admin.user.username = "gravel-lamp"
    for password, words in (("1928374650", "numeric"), ("basketball", "common"), ("gravel-lamp1", "similar")):
        with pytest.raises(ValidationError, match=words):
            validate_password(password, admin.user)
