"""Hosts, their keys, and a real connection test."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.core.management.utils import get_random_secret_key
from pytest_django import Settings

from agents.remote.address import new_key_pair
from experiments.models import AuditEntry, HardwareProfile, Host, Member, Role, Run
from experiments.registry.errors import Conflict, Forbidden, RequestError
from experiments.registry.hosts.check import perform_check
from experiments.registry.hosts.host_keys import key_row
from experiments.registry.hosts.inventory import (
    add_host,
    approve_key,
    clear_dirty,
    connect_args,
    fingerprint,
    grant,
    revoke,
    set_drained,
    update_host,
)
from experiments.registry.hosts.keys import KeyFileError, rotated, seal, unseal
from experiments.registry.hosts.quarantine import quarantine
from experiments.registry.teams.access import may_launch_on
from tests.experiments.conftest import HOST_KEY, HOST_KEY_FINGERPRINT, MakeMember, ready_host
from tests.sshd import running_sshd

PLACE: dict[str, Any] = {"address": "127.0.0.1", "port": 22, "user": "bench", "roles": "both"}


def test_a_key_pair_is_made_and_only_its_public_half_is_readable(admin: Member) -> None:
    host = add_host(admin, name="sut", **PLACE)
    assert host.public_key.startswith("ssh-ed25519 ")
    _, private_key = connect_args(host)
    assert "PRIVATE KEY" in private_key
    stored = bytes(Host.objects.get(pk=host.pk).private_key)
    assert b"PRIVATE KEY" not in stored
    assert "PRIVATE KEY" not in str(list(AuditEntry.objects.values()))


def test_a_given_key_keeps_its_public_half(admin: Member) -> None:
    private_key, public_key = new_key_pair("given")
    host = add_host(admin, name="sut", private_key=private_key, **PLACE)
    assert host.public_key.split()[:2] == public_key.split()[:2]


@pytest.mark.parametrize(
    "change, field",
    [
        ({"address": "a b"}, "address"),
        ({"address": "$(reboot)"}, "address"),
        ({"port": 0}, "port"),
        ({"port": 2**63}, "port"),
        ({"user": "-oProxyCommand=x"}, "user"),
        ({"roles": "king"}, "roles"),
        ({"labels": {"a b": "c"}}, "labels"),
        ({"labels": {"a": "c\nd"}}, "labels"),
        ({"private_key": "-----BEGIN nothing"}, "private_key"),
        ({"name": ""}, "name"),
    ],
)
def test_a_host_that_cannot_be_names_the_field(admin: Member, change: dict[str, Any], field: str) -> None:
    with pytest.raises(RequestError) as caught:
        add_host(admin, **{"name": "sut", **PLACE, **change})
    assert caught.value.field == field
    assert not Host.objects.exists()


def test_two_hosts_of_a_team_have_two_names(admin: Member, other_admin: Member) -> None:
    add_host(admin, name="sut", **PLACE)
    add_host(other_admin, name="sut", **PLACE)
    with pytest.raises(RequestError, match="already"):
        add_host(admin, name="sut", **PLACE)


def test_a_jump_host_is_of_the_same_team_and_leads_nowhere_back(admin: Member, other_admin: Member) -> None:
    jump, foreign = add_host(admin, name="jump", **PLACE), add_host(other_admin, name="jump", **PLACE)
    host = add_host(admin, name="sut", jump=jump, **PLACE)
    for change in ((jump, host), (host, host), (host, foreign)):
        with pytest.raises(RequestError) as caught:
            update_host(admin, change[0], jump=change[1])
        assert caught.value.field == "jump"


def test_only_the_key_that_was_shown_is_approved(admin: Member) -> None:
    host = add_host(admin, name="sut", **PLACE)
    with pytest.raises(Conflict):
        approve_key(admin, host, HOST_KEY_FINGERPRINT)
    Host.objects.filter(pk=host.pk).update(offered_host_key=HOST_KEY)
    with pytest.raises(RequestError):
        approve_key(admin, host, "SHA256:somethingelse")
    approve_key(admin, host, HOST_KEY_FINGERPRINT)
    assert (host.state, host.host_key, host.last_check["state"]) == ("ready", HOST_KEY, "pending")


def test_another_address_needs_another_approval(admin: Member) -> None:
    host = ready_host(admin, "sut")
    assert update_host(admin, host, roles="sut").state == "ready"
    moved = update_host(admin, host, address="127.0.0.2")
    assert (moved.state, moved.host_key) == ("new", "")


def test_a_dirty_host_stays_dirty_at_another_address(admin: Member) -> None:
    host = ready_host(admin, "sut")
    Host.objects.filter(pk=host.pk).update(state="dirty", state_reason="not put back")
    moved = update_host(admin, host, port=2222)
    assert (moved.state, moved.state_reason, moved.host_key) == ("dirty", "not put back", "")
    clear_dirty(admin, moved, "reinstalled")
    assert moved.state == "new"


def test_a_dirty_host_is_not_put_into_service_by_draining_it(admin: Member) -> None:
    host = ready_host(admin, "sut")
    set_drained(admin, host, True)
    assert host.state == "drained"
    set_drained(admin, host, False)
    Host.objects.filter(pk=host.pk).update(state="dirty")
    for drained in (True, False):
        if drained:
            with pytest.raises(Conflict):
                set_drained(admin, host, drained)
        else:
            set_drained(admin, host, drained)
        assert Host.objects.get(pk=host.pk).state == "dirty"
    with pytest.raises(RequestError):
        clear_dirty(admin, host, " ")
    clear_dirty(admin, host, "reinstalled")
    assert host.state == "ready"


def test_a_host_that_was_drained_before_a_run_left_it_dirty_comes_back_drained(admin: Member) -> None:
    host = ready_host(admin, "sut")
    run = Run.objects.create(team=admin.team, number=1)
    set_drained(admin, host, True)
    for _ in range(2):  # a second attempt may find it dirty once more
        quarantine(run, host.pk, ("it was not put back",), try_again=False)
    host.refresh_from_db()
    assert host.state == "dirty"
    clear_dirty(admin, host, "looked at it")
    assert host.state == "drained"
    set_drained(admin, host, False)
    assert (host.state, host.stays_drained) == ("ready", False)


def test_launching_is_granted_per_host(admin: Member, make_member: MakeMember) -> None:
    host, launcher = ready_host(admin, "sut"), make_member(admin.team, Role.LAUNCHER)
    assert not may_launch_on(launcher, host)
    grant(admin, host, launcher)
    assert may_launch_on(launcher, host)
    revoke(admin, host, launcher)
    assert not may_launch_on(launcher, host)


@pytest.mark.parametrize("role", [Role.VIEWER, Role.LAUNCHER])
def test_hosts_are_changed_by_editors(admin: Member, make_member: MakeMember, role: Role) -> None:
    host, member = ready_host(admin, "sut"), make_member(admin.team, role)
    for attempt in (
        lambda: add_host(member, name="x", **PLACE),
        lambda: update_host(member, host, name="y"),
        lambda: approve_key(member, host, "x"),
        lambda: set_drained(member, host, True),
        lambda: clear_dirty(member, host, "x"),
        lambda: grant(member, host, member),
    ):
        with pytest.raises(Forbidden):
            attempt()


def test_the_fingerprint_is_that_of_ssh_keygen() -> None:
    assert fingerprint(HOST_KEY) == HOST_KEY_FINGERPRINT
    with pytest.raises(ValueError):
        fingerprint("nonsense")


def test_a_host_is_scanned_approved_and_then_read(admin: Member, tmp_path: Path) -> None:
    with running_sshd(tmp_path) as sshd:
        host = add_host(
            admin,
            name="sut",
            address=sshd.address,
            port=sshd.port,
            user=sshd.user,
            private_key=sshd.private_key,
            roles="both",
        )
        with pytest.raises(CommandError, match=r"sut: The host shows the key SHA256:.* then approve it"):
            call_command("check_host", "sut", team=admin.team.slug)
        host.refresh_from_db()
        assert (host.state, host.last_check["state"]) == ("new", "ok")
        assert host.offered_host_key.split()[:2] == sshd.host_key.split()[:2]
        approve_key(admin, host, fingerprint(host.offered_host_key))
        perform_check(host.pk)
        said = io.StringIO()
        call_command("check_host", "sut", team=admin.team.slug, stdout=said)
        assert re.fullmatch(r"sut: Logged in and read \d+ facts\..* It is ready\.\n", said.getvalue())
    host.refresh_from_db()
    assert (host.state, host.last_check["state"], host.profile_history.count()) == ("ready", "ok", 1)
    assert host.profile is not None
    assert HardwareProfile.objects.get().facts == host.profile.facts
    run = Run.objects.create(team=admin.team, number=7, state="measuring")
    Host.objects.update(leased_by=run)
    perform_check(host.pk)  # nobody logs in beside a measurement: the host is off by now, and nobody notices
    host.refresh_from_db()
    assert (host.state, host.last_check["state"]) == ("ready", "ok")
    assert "Run #7 was using this host" in host.last_check["message"]
    Host.objects.update(leased_by=None)
    with pytest.raises(CommandError, match="sut: "):
        call_command("check_host", "sut", team=admin.team.slug)
    with pytest.raises(CommandError, match="Team elsewhere has no host sut"):
        call_command("check_host", "sut", team="elsewhere")
    host.refresh_from_db()
    assert (host.state, host.last_check["state"]) == ("unreachable", "failed")
    assert host.last_check["hint"]


def without(folder: Path, *programs: str) -> Path:
    """A directory with all programs of this machine but these."""
    folder.mkdir()
    for place in ("/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin"):
        for program in Path(place).iterdir():
            if program.name not in programs and not (folder / program.name).is_symlink():
                (folder / program.name).symlink_to(program)
    return folder


@pytest.mark.parametrize(
    ("command", "message", "hint"),
    [
        ("echo 'Please log in as ubuntu.'", "and said: Please log in as ubuntu.", "a forced command"),
        ('env PATH={bin} sh -c "$SSH_ORIGINAL_COMMAND"', "sut lacks what a run needs: setsid, flock.", "util-linux"),
    ],
)
def test_a_host_that_cannot_carry_a_run_is_refused_in_words_that_mend_it(
    admin: Member, tmp_path: Path, command: str, message: str, hint: str
) -> None:
    programs = without(tmp_path / "bin", "flock", "setsid")
    with running_sshd(tmp_path, extra=f"ForceCommand {command.format(bin=programs)}") as sshd:
        place: dict[str, Any] = {"address": sshd.address, "port": sshd.port, "user": sshd.user}
        host = ready_host(admin, "sut", **place)
        host.host_key = sshd.host_key
        host.private_key = seal(sshd.private_key, row=key_row(host))
        host.save()
        perform_check(host.pk)
    host.refresh_from_db()
    assert (host.state, host.last_check["state"]) == ("unreachable", "failed")
    assert message in re.sub(r" \(BenchHub [^)]*\)", "", host.last_check["message"])
    assert hint in host.last_check["hint"]
    topics = {one["topic"] for one in host.last_check.get("findings", ())}
    told = {"load_tool", "server" if "server" in topics else "tomcat"}  # what the machine of the test has is named
    assert topics >= (told if "lacks" in message else set()), "all that is missing at once"


@pytest.mark.parametrize(
    ("written", "stored"), [("[::1]", "::1"), ("SUT.Example.COM.", "sut.example.com"), (" 10.0.0.7 ", "10.0.0.7")]
)
def test_an_address_is_stored_in_one_way(admin: Member, written: str, stored: str) -> None:
    host = add_host(admin, name="sut", **{**PLACE, "address": written})
    assert Host.objects.get(pk=host.pk).address == stored
    Host.objects.filter(pk=host.pk).update(address=written.strip(), host_key=HOST_KEY, state="ready")
    update_host(admin, host, labels={"rack": "7"})  # another way to write it is no other machine
    host.refresh_from_db()
    assert (host.address, host.host_key, host.state) == (stored, HOST_KEY, "ready")


@pytest.mark.parametrize("field", ["address", "data_address"])
def test_a_link_local_address_is_refused_with_the_reason(admin: Member, field: str) -> None:
    with pytest.raises(RequestError, match="each machine names its own") as refused:
        add_host(admin, name="sut", **{**PLACE, field: "fe80::1%eth0"})
    assert refused.value.field == field


def test_a_secret_opens_only_for_its_row_and_with_a_key_of_the_file(tmp_path: Path, settings: Settings) -> None:
    from cryptography.fernet import Fernet

    old, new = Fernet.generate_key().decode(), Fernet.generate_key().decode()
    file = tmp_path / "keys"
    settings.BENCHHUB_KEY_FILE = file
    file.write_text(f"{old}\n")
    sealed = seal("secret", row="host:1")
    assert sealed != seal("secret", row="host:1")
    with pytest.raises(KeyFileError):
        unseal(sealed, row="host:2")
    file.write_text(f"# newest first\n{new}\n{old}\n")
    again = rotated(sealed, row="host:1")
    file.write_text(f"{new}\n")
    assert unseal(again, row="host:1") == "secret"
    with pytest.raises(KeyFileError):
        unseal(sealed, row="host:1")
    for text in ("", "# only words\n", f"{get_random_secret_key()}\n", "c2hvcnQ=\n"):
        file.write_text(text)
        with pytest.raises(KeyFileError):
            seal("x", row="host:1")


def test_a_check_of_a_host_that_is_gone_does_nothing(db: None) -> None:
    assert perform_check(123456) is None  # type: ignore[func-returns-value]
