"""A host that a run left dirty is put back once more, by a person's request or by itself, on a real SSH host."""

from __future__ import annotations

import io
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db.models.functions import Now

from agents.working.lease import handing_over
from experiments.asking.launching.choices import Choice
from experiments.asking.launching.launch import launch_run
from experiments.models import AuditEntry, Host, Member, Role, Run
from experiments.registry.errors import Conflict, Forbidden
from experiments.registry.hosts.inventory import clear_dirty
from experiments.registry.hosts.quarantine import restore_state
from experiments.registry.hosts.sites import add_site
from experiments.running.executing.execution import execute_next
from experiments.running.queue.dispatch import next_fence
from experiments.running.restoring import requests
from experiments.running.restoring.attempts import MOST_TRIES
from experiments.running.restoring.requests import MOST_DUE, due_at, repeat_due, request_restore
from experiments.running.restoring.restoration import perform_restore
from tests.agents.conftest import sshd_host  # noqa: F401 - a fixture
from tests.agents.run_lab import free_port
from tests.experiments.conftest import MakeMember, ready_host
from tests.experiments.running.broken_server import launch_broken
from tests.sshd import SshdHost


@pytest.fixture
def tuned(tmp_path: Path) -> Path:
    """A setting of the host: while `stuck` lies beside it, it cannot be put back."""
    file = tmp_path / "setting"
    file.write_text("old")
    (tmp_path / "stuck").touch()
    return file


@pytest.fixture
def dirty(admin: Member, sshd_host: SshdHost, tuned: Path) -> Host:  # noqa: F811 - the fixture
    """A host whose last run could not take its setting back, and where nothing of an earlier test is left."""
    shutil.rmtree(sshd_host.home / ".benchhub", ignore_errors=True)
    step = {
        "kind": "command",
        "run": 'printf new >"$1"',
        "undo": '[ ! -e "${1%/*}/stuck" ] && printf old >"$1"',
        "observe": 'cat "$1"',
        "expect": "new",
        "arguments": [str(tuned)],
    }
    launch_broken(admin, sshd_host, [step])
    assert execute_next()
    host = Host.objects.get()
    assert (host.state, tuned.read_text()) == ("dirty", "new"), Run.objects.get().failure
    return host


def restored(host: Host) -> tuple[str, str]:
    perform_restore(host.pk)
    host.refresh_from_db()
    assert host.leased_by is None
    return host.state, host.last_restore["state"]


def test_a_dirty_host_tells_what_is_not_as_before_and_which_run_left_it(dirty: Host) -> None:
    run = Run.objects.get()
    assert dirty.dirty_run == run
    assert dirty.differences[0].startswith("Undoing: Run printf new")
    assert run.restore == "dirty"
    assert dirty.last_restore == {}


def test_a_host_is_put_back_when_a_person_asks_and_proven(
    admin: Member,
    dirty: Host,
    tuned: Path,
    sshd_host: SshdHost,  # noqa: F811
) -> None:
    request_restore(admin, dirty)
    assert restored(dirty) == ("dirty", "failed")
    assert dirty.differences

    (tuned.parent / "stuck").unlink()
    request_restore(admin, dirty)
    assert restored(dirty) == ("ready", "proven")
    assert tuned.read_text() == "old"
    assert (dirty.differences, dirty.dirty_run) == ([], None)
    run = Run.objects.get()
    assert (run.state, run.outcome, run.restore) == ("finished", "failed", "verified")
    assert list((sshd_host.home / ".benchhub/runs").glob(f"r{run.pk}-*")) == []
    assert AuditEntry.objects.filter(action="host.restore").count() == 2
    assert restored(dirty) == ("ready", "proven")  # a message that comes late does nothing


def test_the_operator_puts_a_host_back_from_the_command_line(dirty: Host, tuned: Path) -> None:
    said, differs = io.StringIO(), io.StringIO()
    with pytest.raises(CommandError, match="still not as it was"):
        call_command("restore_host", dirty.name, team=dirty.team.slug, stdout=said, stderr=differs)
    assert "Undoing: Run printf new" in differs.getvalue()
    (tuned.parent / "stuck").unlink()
    call_command("restore_host", dirty.name, "--force", team=dirty.team.slug, stdout=said)
    assert "Proven to be as it was before run #1. It is ready." in said.getvalue()
    assert tuned.read_text() == "old"
    asked = AuditEntry.objects.filter(action="host.restore").order_by("pk").values_list("actor", "after")
    assert list(asked) == [(None, {"force": False}), (None, {"force": True})]
    with pytest.raises(CommandError, match="is not dirty"):
        call_command("restore_host", dirty.name, team=dirty.team.slug)
    with pytest.raises(CommandError, match="has no host nowhere"):
        call_command("restore_host", "nowhere", team=dirty.team.slug)


def test_a_host_that_is_away_is_tried_again_by_itself(admin: Member, dirty: Host, tuned: Path) -> None:
    port = dirty.port
    (tuned.parent / "stuck").unlink()
    Host.objects.update(port=free_port())
    request_restore(admin, dirty)
    assert restored(dirty) == ("dirty", "again")
    assert "tries again by itself" in dirty.last_restore["hint"]
    Host.objects.update(port=port)
    assert restored(dirty) == ("ready", "proven")


def test_a_second_message_leaves_the_worker_alone_that_is_at_it(admin: Member, dirty: Host, tuned: Path) -> None:
    (tuned.parent / "stuck").unlink()
    request_restore(admin, dirty)
    run = Run.objects.get()
    Run.objects.update(lease_until=Now() + timedelta(minutes=1))
    Host.objects.update(leased_by=run)
    perform_restore(dirty.pk)
    assert (tuned.read_text(), Run.objects.get().fence) == ("new", run.fence)
    for action in (request_restore, lambda member, host: clear_dirty(member, host, "looked at it")):
        with pytest.raises(Conflict, match="putting both back at this moment"):
            action(admin, dirty)

    Run.objects.update(lease_until=Now() - timedelta(seconds=1))  # that worker died
    assert restored(dirty) == ("ready", "proven")
    assert Run.objects.get().lease_until is None


def test_what_is_due_is_sent_again_unless_somebody_is_at_it(
    admin: Member, dirty: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[int] = []
    monkeypatch.setattr(requests, "send", lambda task, host_id, site: sent.append(host_id))
    request_restore(admin, dirty)
    repeat_due()
    assert sent == [], "its message may still come"
    said = dirty.last_restore | {"at": "2026-01-01T00:00:00+00:00"}
    for state, lease_s, due in [
        ("pending", -1, True),
        ("pending", 60, False),
        ("again", -1, True),
        ("failed", -1, False),
    ]:
        Host.objects.update(last_restore=said | {"state": state})
        Run.objects.update(lease_until=Now() + timedelta(seconds=lease_s))
        sent.clear()
        repeat_due()
        assert bool(sent) is due, state


@pytest.mark.parametrize("state, at", [("failed", "2026-01-01T00:00:00+00:00"), ("again", ""), ("pending", "")])
def test_a_site_is_given_every_host_in_its_turn_however_many_cannot_be_put_back_yet(
    admin: Member, stock: dict[str, Any], state: str, at: str
) -> None:
    """Those that are tried again later, those that wait for a person; and of those that are due the longest waiting."""
    site = add_site("berlin", keys_stay=True)
    run = launch_run(admin, Choice(**stock))
    Run.objects.update(state=Run.State.FINISHED)
    others = [*(f"other-{number}" for number in range(MOST_DUE + 1)), "mine"]
    for name in others:
        ready_host(admin, name)
    said = restore_state(state, "", tries=3)
    Host.objects.filter(name__in=others).update(
        site=site, state=Host.State.DIRTY, dirty_run=run, last_restore=said | ({"at": at} if at else {})
    )
    long_ago = restore_state("pending", "") | {"at": "2026-01-02T00:00:00+00:00"}
    Host.objects.filter(name="mine").update(last_restore=long_ago)
    found = [host.name for host in due_at(site, admin.team)]
    assert found[0] == "mine"
    assert len(found) == (MOST_DUE if state == "pending" else 1)


def test_a_worker_that_is_told_to_stop_leaves_the_host_to_the_next_one(admin: Member, dirty: Host, tuned: Path) -> None:
    (tuned.parent / "stuck").unlink()
    request_restore(admin, dirty)
    handing_over.set()
    try:
        perform_restore(dirty.pk)
    finally:
        handing_over.clear()
    dirty.refresh_from_db()
    assert dirty.last_restore["state"] == "pending"
    assert restored(dirty) == ("ready", "proven")


def test_a_host_that_kills_every_worker_is_given_up(admin: Member, dirty: Host) -> None:
    request_restore(admin, dirty)
    Host.objects.update(last_restore=dirty.last_restore | {"tries": MOST_TRIES})
    assert restored(dirty) == ("dirty", "failed")
    assert dirty.last_restore["message"] == "No worker came to the end of putting it back."


def test_a_host_that_has_seen_more_than_the_database_is_restored_above_that(
    admin: Member,
    dirty: Host,
    tuned: Path,
    sshd_host: SshdHost,  # noqa: F811
) -> None:
    fence = sshd_host.home / ".benchhub/fence/fence"
    seen = next_fence() + 1_000_000
    fence.write_text(f"{seen}\n")
    request_restore(admin, dirty)
    assert restored(dirty) == ("dirty", "pending")
    assert tuned.read_text() == "new"
    assert restored(dirty) == ("dirty", "failed"), "with its old reason: something there is stuck"
    assert int(fence.read_text()) > seen


def test_somebody_elses_change_is_only_overwritten_on_request(admin: Member, dirty: Host, tuned: Path) -> None:
    (tuned.parent / "stuck").unlink()
    tuned.write_text("foreign")
    request_restore(admin, dirty)
    assert restored(dirty) == ("dirty", "failed")
    assert "It was 'old', the run made it 'new', now it is 'foreign'" in dirty.differences[0]
    request_restore(admin, dirty, force=True)
    assert restored(dirty) == ("ready", "proven")
    assert tuned.read_text() == "old"


def test_a_person_who_checked_a_host_puts_it_back_into_service(admin: Member, dirty: Host) -> None:
    clear_dirty(admin, dirty, "looked at it")
    assert (dirty.state, dirty.differences, dirty.dirty_run) == ("ready", [], None)
    with pytest.raises(Conflict, match="is not dirty"):
        request_restore(admin, dirty)


def test_only_an_editor_may_ask(dirty: Host, make_member: MakeMember) -> None:
    with pytest.raises(Forbidden):
        request_restore(make_member(dirty.team, Role.LAUNCHER), dirty)
