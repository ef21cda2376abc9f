"""Runs when BenchHub itself is in trouble: every one comes to an end, and no host is trusted blindly."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from agents.working.execution import MAX_ATTEMPTS
from agents.working.lease import handing_over
from experiments.asking.launching.choices import Choice
from experiments.asking.launching.launch import launch_run
from experiments.models import AuditEntry, Host, Member, Run
from experiments.running.executing import database_store, execution
from experiments.running.executing.execution import execute_next
from experiments.running.queue.dispatch import claim_next, next_fence
from tests.agents.conftest import sshd_host  # noqa: F401 - a fixture
from tests.experiments.conftest import ready_host
from tests.experiments.running.broken_server import launch_broken
from tests.sshd import SshdHost


@pytest.fixture
def run(admin: Member, sshd_host: SshdHost) -> Run:  # noqa: F811 - the fixture
    return launch_broken(admin, sshd_host)


def ended(run: Run) -> tuple[str, str, str]:
    run.refresh_from_db()
    assert run.state == "finished"
    assert run.lease_until is None
    return run.outcome, run.restore, Host.objects.get().state


def test_a_run_that_fails_is_put_back_and_its_host_goes_on(run: Run, sshd_host: SshdHost) -> None:  # noqa: F811
    assert execute_next()
    assert ended(run) == ("failed", "verified", "ready")
    assert run.failure == "The server ended while starting (exit status 3)."
    assert Host.objects.get().leased_by is None
    assert list((sshd_host.home / ".benchhub/runs").glob(f"r{run.pk}-*")) == []
    assert not execute_next()


def test_whoever_claims_a_run_wakes_others_before_it_works_on_it(
    admin: Member, stock: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = {name: stock[name] for name in ("application", "recipe", "workload")}
    pairs = [(ready_host(admin, f"free-{n}"), ready_host(admin, f"idle-{n}")) for n in range(2)]
    runs = [launch_run(admin, Choice(**documents, sut=sut, drivers=[driver])) for sut, driver in pairs]
    done: list[tuple[str, int]] = []
    monkeypatch.setattr(execution, "hint", lambda run_id: done.append(("wakes others", run_id)))

    def work(run: Run) -> bool:
        done.append(("works", run.pk))
        return True

    monkeypatch.setattr(execution, "_execute_claimed", work)
    assert [execute_next(), execute_next(), execute_next()] == [True, True, False]
    first, second = (run.pk for run in runs)
    assert done == [("wakes others", first), ("works", first), ("works", second)]


def test_a_host_that_has_seen_more_than_the_database_gets_a_greater_fence(
    run: Run,
    sshd_host: SshdHost,  # noqa: F811
) -> None:
    fence = sshd_host.home / ".benchhub/fence"
    fence.mkdir(parents=True, exist_ok=True)
    known = (fence / "fence").read_text() if (fence / "fence").exists() else "0"
    seen = next_fence() + 1_000_000
    (fence / "fence").write_text(f"{seen}\n")
    try:
        assert execute_next()
        Run.objects.filter(lease_until__isnull=False).update(lease_until=timezone.now() - timedelta(seconds=1))
        assert execute_next()
    finally:
        (fence / "fence").write_text(known)
    assert ended(run) == ("failed", "verified", "ready")
    assert Run.objects.get(pk=run.pk).fence > seen
    assert AuditEntry.objects.get(action="host.newer_than_database").after["fence"] == seen  # type: ignore[index]


def test_a_host_that_claims_to_have_seen_what_cannot_be_does_not_use_up_the_fences_of_all_hosts(
    run: Run,
    sshd_host: SshdHost,  # noqa: F811
) -> None:
    fence = sshd_host.home / ".benchhub/fence"
    fence.mkdir(parents=True, exist_ok=True)
    known = (fence / "fence").read_text() if (fence / "fence").exists() else "0"
    (fence / "fence").write_text("999999999999999999\n")
    before = next_fence()
    try:
        assert execute_next()
    finally:
        (fence / "fence").write_text(known)
    assert ended(run) == ("lost", "dirty", "dirty")
    assert "newer holder" in run.failure
    assert "the database is an older copy" in run.failure_hint
    assert next_fence() < before + 1000
    assert not AuditEntry.objects.filter(action="host.newer_than_database").exists()


def test_a_specification_that_nobody_understands_any_more_ends_the_run(run: Run) -> None:
    Run.objects.update(spec={"written": "by another version"})
    assert execute_next()
    assert ended(run) == ("lost", "", "ready")
    assert run.failure.startswith("BenchHub made a mistake")


def test_a_mistake_in_the_figures_does_not_keep_the_host(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(database_store, "conclude", broken)
    assert execute_next()
    outcome, _, state = ended(run)
    assert (outcome, state) == ("failed", "ready")  # the reason for the failure was stored before


def test_a_run_that_kills_every_worker_comes_to_an_end(run: Run) -> None:
    Run.objects.update(attempts=MAX_ATTEMPTS)
    assert execute_next()
    outcome, _, _ = ended(run)
    assert outcome == "lost"
    assert f"{MAX_ATTEMPTS} workers began with this run" in run.failure


def test_a_key_that_cannot_be_opened_is_told_in_plain_words(run: Run, settings: Any, tmp_path: Path) -> None:
    settings.BENCHHUB_KEY_FILE = tmp_path / "none"
    assert execute_next()
    assert ended(run) == ("failed", "", "ready")
    assert run.failure.startswith("The private key for both cannot be opened")


def test_another_host_key_than_at_launch_is_refused(run: Run) -> None:
    Host.objects.update(host_key="ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIC1xFkK3JrBEAWJ8qfusMvXIUw+xkDzE2wIlhxeSGkiB")
    assert execute_next()
    assert ended(run) == ("failed", "", "ready")
    assert "not the one that this run was launched with" in run.failure


def test_a_worker_that_is_told_to_stop_claims_nothing(run: Run) -> None:
    handing_over.set()
    try:
        assert not execute_next()
    finally:
        handing_over.clear()
    run.refresh_from_db()
    assert run.state == "queued"
    assert claim_next("another") == run
