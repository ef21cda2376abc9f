from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import Client

from benchhub.embedded import PROJECT_DIR
from benchhub.environment import broker_url, database_settings, envbool, envint, envlist, envsecret, kept_secret
from benchhub.file_storage import file_storage

FERNET_KEY = "p5TQvLZ2mX7Rr0yXf0m1vXQm3hG4sB6tY8nD2cK1eW0="


def manage(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """manage.py with nothing of this session's environment but the path."""
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=PROJECT_DIR,
        env={"PATH": os.environ["PATH"]} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def production(tmp_path: Path) -> dict[str, str]:
    key_file = tmp_path / "keys"
    key_file.write_text(FERNET_KEY)
    return {
        "BENCHHUB_DATA_DIR": str(tmp_path / "data"),
        "BENCHHUB_KEY_FILE": str(key_file),
        "DATABASE_URL": "postgresql://bench:secret@db.example:5433/bench",
        "REDIS_URL": "redis://redis.example:6379/0",
        "SECRET_KEY": "k8Jv3nQz7WcX2mLp9RtY5bHd1sFg4aEe6uIi0oTqNhVrBxMyZk4w",
        "ALLOWED_HOSTS": "bench.example",
    }


def test_production_settings_pass_the_deployment_check(production: dict[str, str]) -> None:
    result = manage(production, "check", "--deploy", "--fail-level", "WARNING")

    assert result.returncode == 0, result.stderr
    assert "no issues" in result.stdout


@pytest.mark.parametrize(
    "change, sentence",
    [
        ({"SECRET_KEY": "short"}, "Set SECRET_KEY"),
        ({"SECRET_KEY": ""}, "Set SECRET_KEY"),
        ({"ALLOWED_HOSTS": ""}, "Set ALLOWED_HOSTS"),
        ({"BENCHHUB_KEY_FILE": "/nowhere"}, "BENCHHUB_KEY_FILE /nowhere is missing"),
        ({"REDIS_URL": ""}, "Set both DATABASE_URL and REDIS_URL"),
        ({"DATABASE_URL": "mysql://db/x"}, "must start with postgresql://"),
        ({"DEBUG": "perhaps"}, "DEBUG must be yes or no"),
        ({"BENCHHUB_DEADMAN_S": "825"}, "BENCHHUB_DEADMAN_S must be more than 5/4 of BENCHHUB_PATIENCE_S"),
        ({"BENCHHUB_HEARTBEAT_S": "31"}, "BENCHHUB_HEARTBEAT_S must be from 1 to half of BENCHHUB_LEASE_S"),
        ({"BENCHHUB_HEARTBEAT_S": "0"}, "BENCHHUB_HEARTBEAT_S must be from 1 to half of BENCHHUB_LEASE_S"),
    ],
)
def test_production_settings_that_lack_something_stop_the_start_with_a_sentence(
    production: dict[str, str], change: dict[str, str], sentence: str
) -> None:
    result = manage(production | change, "check")

    assert result.returncode != 0
    assert sentence in result.stderr


def test_the_one_machine_start_needs_no_settings_and_keeps_its_keys_to_itself(data_dir: Path) -> None:
    result = manage({"BENCHHUB_DATA_DIR": str(data_dir)}, "check")

    assert result.returncode == 0, result.stderr
    assert {path.name: stat.S_IMODE(path.stat().st_mode) for path in data_dir.iterdir()} == {
        "secret_key": 0o600,
        "fernet_keys": 0o600,
    }


DISK, S3 = "benchhub.files_on_disk.FilesOnDisk", "benchhub.files_on_s3.FilesOnS3"


@pytest.mark.parametrize(
    ("change", "one_machine", "backend"),
    [
        ({}, True, DISK),
        ({}, False, None),  # nobody knows which directory all processes share
        ({"BENCHHUB_FILES_DIR": ""}, False, None),
        ({"BENCHHUB_FILES_DIR": "/srv/files"}, False, DISK),
        ({"BENCHHUB_BUCKET": "runs", "BENCHHUB_FILES_DIR": ""}, False, S3),
        ({"BENCHHUB_BUCKET": "runs", "BENCHHUB_BUCKET_ENDPOINT": "https://s3.example.org"}, True, S3),
    ],
)
def test_large_files_go_where_the_environment_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, change: dict[str, str], one_machine: bool, backend: str | None
) -> None:
    for name, value in change.items():
        monkeypatch.setenv(name, value)
    found = file_storage(tmp_path, one_machine=one_machine)
    assert (found and found["BACKEND"]) == backend


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"BENCHHUB_BUCKET": "runs", "BENCHHUB_FILES_DIR": "/srv/files"}, "are both set; keep one"),
        ({"BENCHHUB_BUCKET_REGION": "eu-central-1"}, "Set BENCHHUB_BUCKET as well"),
        ({"BENCHHUB_BUCKET": "runs", "BENCHHUB_BUCKET_SECRET": "x"}, "Set both BENCHHUB_BUCKET_KEY_ID and"),
        ({"BENCHHUB_BUCKET": "runs", "BENCHHUB_BUCKET_ENDPOINT": "s3.example.org"}, "begins with https:// or http://"),
    ],
)
def test_a_place_of_files_that_makes_no_sense_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, change: dict[str, str], sentence: str
) -> None:
    for name, value in change.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ImproperlyConfigured, match=sentence):
        file_storage(tmp_path, one_machine=True)


@pytest.mark.parametrize("text, expected", [("yes", True), ("0", False), ("TRUE", True), ("off", False), ("", False)])
def test_envbool_reads_the_usual_words(monkeypatch: pytest.MonkeyPatch, text: str, expected: bool) -> None:
    monkeypatch.setenv("A_SWITCH", text)

    assert envbool("A_SWITCH", not expected) is expected


def test_environment_values_that_make_no_sense_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("A_NUMBER", "ten")
    monkeypatch.setenv("A_SECRET", "x")
    monkeypatch.setenv("A_SECRET_FILE", str(tmp_path / "x"))
    monkeypatch.setenv("OTHER_FILE", str(tmp_path / "missing"))

    with pytest.raises(ImproperlyConfigured, match="A_NUMBER must be a whole number"):
        envint("A_NUMBER", 1)
    with pytest.raises(ImproperlyConfigured, match="both set"):
        envsecret("A_SECRET")
    with pytest.raises(ImproperlyConfigured, match="OTHER_FILE cannot be read"):
        envsecret("OTHER")


def test_lists_and_secret_files_are_trimmed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s3cret\n")
    monkeypatch.setenv("A_SECRET_FILE", str(tmp_path / "secret"))
    monkeypatch.setenv("A_LIST", " a, ,b ")

    assert envsecret("A_SECRET") == "s3cret"
    assert envlist("A_LIST") == ["a", "b"]
    assert envlist("NOT_SET", ("c",)) == ["c"]


def test_a_kept_secret_is_made_once(tmp_path: Path) -> None:
    made = iter(["first", "second"])

    assert [kept_secret(tmp_path / "secret", lambda: next(made)) for _ in range(2)] == ["first", "first"]
    assert [path.name for path in tmp_path.iterdir()] == ["secret"]


@pytest.mark.parametrize(
    "url, expected",
    [
        ("postgresql://u:p%40x@db:5433/n", ("n", "u", "p@x", "db", "5433", {})),
        ("postgres://u@db/n?sslmode=require", ("n", "u", "", "db", "", {"sslmode": "require"})),
        ("postgresql://u@/n?host=%2Frun%2Fpg", ("n", "u", "", "/run/pg", "", {})),
    ],
)
def test_database_urls(url: str, expected: tuple[object, ...]) -> None:
    settings = database_settings(url)

    assert tuple(settings[key] for key in ("NAME", "USER", "PASSWORD", "HOST", "PORT", "OPTIONS")) == expected


@pytest.mark.parametrize("url", ["postgresql://u@db/", "postgresql://u@db:port/n", "sqlite:///x"])
def test_database_urls_that_cannot_work_are_refused(url: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="DATABASE_URL"):
        database_settings(url)


@pytest.mark.parametrize(
    "url, expected",
    [
        ("redis://r:6379/1", "redis://r:6379/1"),
        ("unix:///run/r.sock?db=3", "redis+socket:///run/r.sock?virtual_host=3"),
    ],
)
def test_the_broker_gets_its_own_spelling_of_the_redis_url(url: str, expected: str) -> None:
    assert broker_url(url) == expected


@pytest.mark.django_db
def test_every_page_has_a_policy_with_a_nonce_of_its_own(client: Client) -> None:
    policies = {client.get("/accounts/login/").headers["Content-Security-Policy"] for _ in range(2)}

    assert len(policies) == 2
    assert all("script-src 'self' 'nonce-" in policy and "unsafe" not in policy for policy in policies)


@pytest.mark.django_db
def test_health_is_answered_under_any_host_name(client: Client) -> None:
    assert client.get("/healthz", headers={"host": "10.0.0.7"}).content == b"ok\n"


@pytest.mark.django_db
def test_nobody_signs_up_by_themselves(client: Client) -> None:
    client.post(
        "/accounts/signup/",
        {"username": "eve", "email": "eve@example.org", "password1": "abcDEF123!x", "password2": "abcDEF123!x"},
    )

    assert not client.login(username="eve", password="abcDEF123!x")


@pytest.mark.django_db
def test_guessing_a_password_is_throttled(client: Client) -> None:
    answers = [
        client.post("/accounts/login/", {"login": "alice", "password": f"guess {attempt}"}).content.decode()
        for attempt in range(7)
    ]

    assert "Too many failed login attempts" not in answers[0]
    assert "Too many failed login attempts" in answers[-1]
