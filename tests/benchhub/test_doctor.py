"""`doctor`: each thing that an installation needs is broken here in turn, and is named with what to do."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.db.migrations.recorder import MigrationRecorder

from benchhub import doctor, tables
from benchhub.embedded import PROJECT_DIR
from experiments.models import Member
from experiments.registry.hosts.inventory import add_host
from tests.agents.run_lab import free_port
from tests.experiments.conftest import admin, make_member, team
from tests.experiments.telling.receiver import make_certificates

__all__ = ["admin", "make_member", "team"]  # fixtures

Settings = Any
Break = Callable[[Settings, Path], None]


def found(port: int | None = None) -> dict[str, doctor.Finding]:
    """The worst finding of each thing."""
    order = ("ok", "advice", "wrong")
    worst: dict[str, doctor.Finding] = {}
    for one in doctor.findings(port or free_port()):
        if one.what not in worst or order.index(one.level) > order.index(worst[one.what].level):
            worst[one.what] = one
    return worst


def backup_of(days_ago: int) -> Break:
    def make(settings: Settings, place: Path) -> None:
        settings.BENCHHUB_BACKUP_DIR = place
        (place / f"benchhub-{datetime.now(UTC) - timedelta(days=days_ago):%Y-%m-%d}.backup").write_bytes(b"x")

    return make


def no_backups(settings: Settings, place: Path) -> None:
    settings.BENCHHUB_BACKUP_DIR = place / "away"


def broken_key_file(settings: Settings, place: Path) -> None:
    settings.BENCHHUB_KEY_FILE = place / "keys"
    settings.BENCHHUB_KEY_FILE.write_text("no key\n")


def open_key_file(settings: Settings, place: Path) -> None:
    settings.BENCHHUB_KEY_FILE = place / "keys"
    settings.BENCHHUB_KEY_FILE.write_text(Fernet.generate_key().decode())
    settings.BENCHHUB_KEY_FILE.chmod(0o644)


def other_key(settings: Settings, place: Path) -> None:
    open_key_file(settings, place)
    settings.BENCHHUB_KEY_FILE.chmod(0o600)


def other_packages(settings: Settings, place: Path) -> None:
    settings.BASE_DIR = place
    (place / "pyproject.toml").touch()
    (place / "requirements.txt").write_text("# What it needs\nDjango==0.1  # pages\nnot-there==1.0\nredis>=1\n")


def certificate_of(name: str, content: str | None) -> Break:
    def make(settings: Settings, place: Path) -> None:
        setattr(settings, name, place / "ca.pem")
        if content is not None:
            (place / "ca.pem").write_text(content)

    return make


def good_certificate(settings: Settings, place: Path) -> None:
    make_certificates(place)
    settings.BENCHHUB_WEBHOOK_CA_FILE = settings.OTEL_EXPORTER_OTLP_CERTIFICATE = place / "ca.pem"


def older_tables(_settings: Settings, _place: Path) -> None:
    MigrationRecorder.Migration.objects.filter(app="experiments").latest("pk").delete()


def nothing(_settings: Settings, _place: Path) -> None:
    return


@pytest.mark.parametrize(
    ("what", "level", "words", "change"),
    [
        ("packages", "ok", "BenchHub", nothing),
        ("packages", "wrong", "needs them: Django==0.1, not-there==1.0 (bin/setup-env)", other_packages),
        ("PostgreSQL", "ok", "bin", nothing),
        ("Redis", "ok", "redis-server", nothing),
        ("disk", "ok", "GB are free", nothing),
        ("keys", "ok", "apart from the backups", nothing),
        ("keys", "wrong", "Line 1 of", broken_key_file),
        ("keys", "wrong", "chmod 600", open_key_file),
        ("certificates", "ok", "can be used", good_certificate),
        ("certificates", "wrong", "BENCHHUB_WEBHOOK_CA_FILE", certificate_of("BENCHHUB_WEBHOOK_CA_FILE", "no PEM")),
        ("certificates", "wrong", "No such file", certificate_of("OTEL_EXPORTER_OTLP_CERTIFICATE", None)),
        ("database", "ok", "PostgreSQL 18", nothing),
        ("tables", "ok", "those of BenchHub", nothing),
        ("tables", "wrong", "migrate", older_tables),
        ("secrets", "ok", "1 hosts looked at", nothing),
        ("secrets", "wrong", "Put the key file back", other_key),
        ("workers", "advice", "up` starts it", nothing),
        ("backups", "advice", "set BENCHHUB_BACKUP_DIR", nothing),
        ("backups", "wrong", "cannot be written to", no_backups),
        ("backups", "ok", "1 are kept", backup_of(1)),
        ("backups", "wrong", "worker-default", backup_of(5)),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_what_to_do(
    admin: Member, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    what: str, level: str, words: str, change: Break,
) -> None:  # fmt: skip
    monkeypatch.setattr(tables, "_migrated", False)
    add_host(admin, name="sut", address="127.0.0.1", port=22, user="bench", roles="sut")
    change(settings, tmp_path)
    finding = found()[what]
    assert (finding.level, words in finding.sentence) == (level, True), finding


def test_a_disk_that_is_full_or_nearly_is_said(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "NEARLY_FULL_BYTES", 10**18)
    assert found()["disk"].level == "advice"
    monkeypatch.setattr(doctor, "TOO_FULL_BYTES", 10**18)
    assert (found()["disk"].level, "make room" in found()["disk"].sentence) == ("wrong", True)


def test_a_taken_port_is_said(db: None) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        assert (found(port)["pages"].level, f"Port {port} is taken" in found(port)["pages"].sentence) == ("wrong", True)


def test_the_first_account_and_one_of_an_operator_are_asked_for(db: None, request: pytest.FixtureRequest) -> None:
    assert "createadmin --user NAME" in found()["accounts"].sentence
    admin: Member = request.getfixturevalue("admin")
    assert "None is an operator's" in found()["accounts"].sentence
    admin.user.is_staff = True
    admin.user.save()
    assert found()["accounts"].level == "ok"


def test_an_installation_at_work_needs_its_workers(admin: Member, settings: Settings) -> None:
    settings.BENCHHUB_EMBEDDED = False
    silent = found()["workers"]
    assert (silent.level, "Beat has sent no message" in silent.sentence) == ("wrong", True)


@pytest.mark.parametrize(
    ("environment", "status", "words"),
    [
        ({}, 0, "There is none yet; `"),
        ({"DATABASE_URL": "postgresql://a:b@127.0.0.1:1/x", "REDIS_URL": "redis://127.0.0.1:1/0", "ALLOWED_HOSTS": "x",
          "SECRET_KEY": "x" * 60}, 1, "It does not answer (DATABASE_URL)"),
    ],
    ids=["before the first start", "the database is away"],
)  # fmt: skip
def test_the_exit_status_says_whether_something_is_wrong(
    data_dir: Path, environment: dict[str, str], status: int, words: str
) -> None:
    (data_dir / "fernet_keys").write_text(Fernet.generate_key().decode())
    (data_dir / "fernet_keys").chmod(0o600)
    argv = [sys.executable, "manage.py", "doctor", "--port", str(free_port())]
    whole = {"PATH": os.environ["PATH"], "BENCHHUB_DATA_DIR": str(data_dir), **environment}
    done = subprocess.run(argv, cwd=PROJECT_DIR, env=whole, capture_output=True, text=True, check=False, timeout=300)
    assert (done.returncode, words in done.stdout) == (status, True), (done.stdout, done.stderr)
    assert done.stdout.endswith("Nothing is wrong.\n" if status == 0 else "1 thing is wrong.\n")
    assert not (data_dir / "services").exists()
