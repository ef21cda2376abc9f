"""What production settings say of cookies and HTTPS, and what one machine may do without."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.benchhub.test_settings import manage, production

__all__ = ["production"]  # a fixture


def settings_of(environment: dict[str, str]) -> dict[str, str]:
    """The settings that differ from Django's own, as text."""
    result = manage(environment, "diffsettings")
    assert result.returncode == 0, result.stderr
    return dict(re.findall(r"^(\w+) = (.*?)(?:  ###)?$", result.stdout, re.MULTILINE))


def test_production_cookies_belong_to_this_host_alone_and_travel_by_https(production: dict[str, str]) -> None:
    found = settings_of(production)
    assert found["SESSION_COOKIE_NAME"] == "'__Host-session'"
    assert found["CSRF_COOKIE_NAME"] == "'__Host-csrf'"
    assert (found["SESSION_COOKIE_SECURE"], found["CSRF_COOKIE_SECURE"]) == ("True", "True")
    # A browser takes a __Host- cookie only for all of one host: no domain, no path.
    assert not found.keys() & {"SESSION_COOKIE_DOMAIN", "CSRF_COOKIE_DOMAIN", "SESSION_COOKIE_PATH", "CSRF_COOKIE_PATH"}
    assert not found.keys() & {"SESSION_COOKIE_HTTPONLY", "SESSION_COOKIE_SAMESITE"}  # Django's own: True and Lax
    assert found["MESSAGE_STORAGE"] == "'django.contrib.messages.storage.session.SessionStorage'"
    assert found["SECURE_SSL_REDIRECT"] == "True"
    assert int(found["SECURE_HSTS_SECONDS"]) >= 365 * 24 * 3600
    assert found["SECURE_HSTS_INCLUDE_SUBDOMAINS"] == "True"
    assert "SECURE_PROXY_SSL_HEADER" not in found  # believed only of a proxy that is there


@pytest.mark.parametrize("number, header", [("0", None), ("1", "('HTTP_X_FORWARDED_PROTO', 'https')")])
def test_a_proxys_word_is_believed_only_where_there_is_one(
    production: dict[str, str], number: str, header: str | None
) -> None:
    assert settings_of(production | {"BENCHHUB_PROXY_COUNT": number}).get("SECURE_PROXY_SSL_HEADER") == header


def test_one_machine_serves_plain_http_to_itself_only(data_dir: Path) -> None:
    found = settings_of({"BENCHHUB_DATA_DIR": str(data_dir)})
    assert found["SESSION_COOKIE_NAME"] == "'benchhub_session'"
    assert found["ALLOWED_HOSTS"] == "['localhost', '127.0.0.1', '[::1]']"
