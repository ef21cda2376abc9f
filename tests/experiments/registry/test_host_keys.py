"""The keys of a host: all that it shows, one approved, and another one in its place after it was installed anew."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agents.remote.address import HostKey
from experiments.models import AuditEntry, Host, Member, Run
from experiments.registry.errors import Conflict, RequestError
from experiments.registry.hosts.check import perform_check
from experiments.registry.hosts.host_keys import key_row, shown_keys
from experiments.registry.hosts.inventory import approve_key
from experiments.registry.hosts.keys import seal
from tests.experiments.conftest import ready_host
from tests.sshd import SshdHost, running_sshd

TYPES = ("ed25519", "ecdsa", "rsa")


def make_keys(folder: Path) -> dict[str, str]:
    """One key of each type as a Debian installation has them; the line of each by its type."""
    folder.mkdir()
    for kind in TYPES:
        subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", "", "-f", folder / kind], check=True)
    return {kind: " ".join((folder / f"{kind}.pub").read_text().split()[:2]) for kind in TYPES}


def printed(file: Path) -> tuple[str, str]:
    """Fingerprint and type as a person sees them on the host's console."""
    said = subprocess.run(["ssh-keygen", "-lf", file], check=True, capture_output=True, text=True).stdout.split()
    return said[1], said[-1].strip("()")


@contextmanager
def debian(folder: Path) -> Iterator[SshdHost]:
    """An sshd with three host keys below `folder/keys`, RSA first as in Debian's sshd_config."""
    make_keys(folder / "keys")
    extra = "\n".join(f"HostKey {folder}/keys/{kind}" for kind in ("rsa", "ecdsa", "ed25519"))
    with running_sshd(folder, extra=extra, host_key=False) as host:
        yield host


def install_anew(folder: Path, sshd: SshdHost) -> None:
    """Other keys at the same place, and an sshd that shows them."""
    for file in (folder / "keys").iterdir():
        file.unlink()
    (folder / "keys").rmdir()
    made = make_keys(folder / "keys")
    os.kill(sshd.pid, signal.SIGHUP)
    for line in made.values():
        sshd.await_host_key(line)


def host_at(member: Member, sshd: SshdHost, **more: Any) -> Host:
    host = ready_host(member, "sut", address=sshd.address, port=sshd.port, user=sshd.user)
    host.private_key = seal(sshd.private_key, row=key_row(host))
    for name, value in more.items():
        setattr(host, name, value)
    host.save()
    return host


def looked_at(host: Host) -> Host:
    perform_check(host.pk)
    host.refresh_from_db()
    return host


@pytest.fixture(autouse=True)
def _no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("experiments.registry.hosts.inventory.send", lambda task, host_id: None)


def test_a_new_host_shows_all_of_its_keys_and_the_one_to_compare_first(admin: Member, tmp_path: Path) -> None:
    with debian(tmp_path) as sshd:
        host = looked_at(host_at(admin, sshd, host_key="", state="new"))
        shown = shown_keys(host.offered_host_key)
        assert [(key.fingerprint, key.kind) for key in shown] == [
            printed(tmp_path / "keys" / f"{t}.pub") for t in TYPES
        ]
        assert [key.file for key in shown] == [f"/etc/ssh/ssh_host_{kind}_key.pub" for kind in TYPES]
        assert f"shows the key {shown[0].fingerprint} (ED25519)." in host.last_check["message"]
        assert "`ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub`" in host.last_check["hint"]

        approve_key(admin, host, shown[2].fingerprint)  # a person may choose another of them
        assert host.host_key == shown[2].line
        assert looked_at(host).last_check["state"] == "ok"
    assert "Accepted publickey" in (tmp_path / "sshd.log").read_text()


def test_the_file_of_the_key_that_is_shown_is_named_also_where_there_is_no_ed25519(
    admin: Member, tmp_path: Path
) -> None:
    make_keys(tmp_path / "keys")
    with running_sshd(tmp_path, extra=f"HostKey {tmp_path}/keys/rsa", host_key=False) as sshd:
        host = looked_at(host_at(admin, sshd, host_key="", state="new"))
    assert [key.kind for key in shown_keys(host.offered_host_key)] == ["RSA"]
    assert "ssh_host_rsa_key.pub" in host.last_check["hint"]


def test_a_host_that_was_installed_anew_is_decided_by_a_person_and_not_logged_in_to_before(
    admin: Member, tmp_path: Path
) -> None:
    with debian(tmp_path) as sshd:
        host = looked_at(host_at(admin, sshd, host_key="", state="new"))
        old = shown_keys(host.offered_host_key)[0]
        approve_key(admin, host, old.fingerprint)
        assert looked_at(host).last_check["state"] == "ok"
        with pytest.raises(Conflict, match="shows the approved key"):
            approve_key(admin, host, old.fingerprint)

        install_anew(tmp_path, sshd)
        logins = (tmp_path / "sshd.log").read_text().count("Accepted publickey")
        host = looked_at(host)
        new = shown_keys(host.offered_host_key)[0]
        assert (host.state, host.last_check["state"], host.host_key) == ("unreachable", "failed", old.line)
        assert f"shows the key {new}, and approved is {old}. BenchHub did not log in." in host.last_check["message"]
        assert "installed anew" in host.last_check["hint"]
        with pytest.raises(RequestError, match="none has the fingerprint"):
            approve_key(admin, host, old.fingerprint)
        assert (tmp_path / "sshd.log").read_text().count("Accepted publickey") == logins

        approve_key(admin, host, new.fingerprint)
        entry = AuditEntry.objects.filter(action="host.approve_key").latest("pk")
        assert (entry.before, entry.after) == ({"fingerprint": old.fingerprint}, {"fingerprint": new.fingerprint})
        assert (looked_at(host).state, host.last_check["state"], host.offered_host_key) == ("ready", "ok", "")


def test_a_host_that_proves_to_be_the_approved_one_again_offers_no_other_key(admin: Member, tmp_path: Path) -> None:
    with running_sshd(tmp_path) as sshd:
        other = make_keys(tmp_path / "other")["ed25519"]
        host = host_at(admin, sshd, host_key=sshd.host_key, offered_host_key=other, state="unreachable")
        assert (looked_at(host).state, host.offered_host_key) == ("ready", "")


def test_a_key_that_changed_is_not_approved_under_a_run(admin: Member, tmp_path: Path) -> None:
    host = ready_host(admin, "sut")
    other = HostKey(make_keys(tmp_path / "keys")["ed25519"])
    run = Run.objects.create(team=admin.team, number=7, state="measuring")
    Host.objects.update(offered_host_key=other.line, leased_by=run)
    with pytest.raises(Conflict, match="must put it back"):
        approve_key(admin, host, other.fingerprint)


def test_a_jump_host_that_changed_is_told_and_the_host_behind_it_offers_nothing(admin: Member, tmp_path: Path) -> None:
    with running_sshd(tmp_path) as sshd:
        jump = ready_host(admin, "jump", address=sshd.address, port=sshd.port, user=sshd.user)
        host = host_at(admin, sshd, host_key=sshd.host_key, jump=jump)
        assert jump.host_key != sshd.host_key
        host = looked_at(host)
    assert host.last_check["message"].startswith("jump (")
    assert host.offered_host_key == ""
