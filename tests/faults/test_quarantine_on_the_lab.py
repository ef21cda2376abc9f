"""The same faults through a real worker: what the run and the host say afterwards, and what is scheduled on it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from experiments.models import Host, Run
from experiments.running.restoring.requests import repeat_due, request_restore
from lab.lab import Lab, LabHost
from tests.faults.conftest import admin, make_member, stage, team
from tests.faults.lab_run import INSIDE
from tests.faults.stage import Actor, Stage, has_event
from tests.lab.conftest import lab, lab_of_module

__all__ = ["admin", "lab", "lab_of_module", "make_member", "stage", "team"]

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.faults, pytest.mark.lab, pytest.mark.slow]

SETTING = {"net.ipv4.tcp_fin_timeout": "31"}


@pytest.fixture
def pair(lab: Lab, stage: Stage) -> tuple[Actor, Actor]:
    """SUT and driver of the lab on that stage, with a worker that waits one second for a host that is away."""
    stage.environment |= {"BENCHHUB_PATIENCE_S": "1", "BENCHHUB_DEADMAN_S": "600"}
    stage.start_worker("one", lease_s=30)
    return add(stage, lab.host("sut"), "sut"), add(stage, lab.host("driver"), "driver")


def add(stage: Stage, host: LabHost, roles: str) -> Actor:
    def read(key: str) -> str:
        return host.exec("cat", f"/proc/sys/{key.replace('.', '/')}").stdout.decode().strip()

    return stage.add_host(
        host.name,
        host,
        roles=roles,
        root=host.disk / "fs" / INSIDE.strip("/"),
        inside=INSIDE,
        data_address=host.data_address,
        bind="0.0.0.0",
        python="/usr/bin/python3",
        sysctl=SETTING if roles == "sut" else None,
        read_sysctl=read,
    )


def measuring(stage: Stage, pair: tuple[Actor, Actor], act: Callable[[], object], *, measure_s: int = 3) -> Run:
    """A run to which this happened under the measured load."""
    run = stage.launch(*pair, warm_up_s=0, measure_s=measure_s)
    stage.until(has_event(run, "load_started", measured=True))
    act()
    stage.until(stage.all_finished)
    run.refresh_from_db()
    return run


def row(actor: Actor) -> Host:
    return Host.objects.get(pk=actor.row.pk)


def restored(stage: Stage, actor: Actor, *, force: bool = False) -> Host:
    """The host after a person asked BenchHub to put it back."""
    request_restore(stage.member, row(actor), force=force)

    def is_over() -> bool:
        repeat_due()  # as beat does: a message that waits for long is dropped
        return row(actor).last_restore.get("state") not in ("pending", "again")

    stage.until(is_over)
    return row(actor)


def test_a_sut_that_stays_away_is_quarantined_and_in_service_again_once_it_is_put_back(
    stage: Stage, pair: tuple[Actor, Actor], lab: Lab
) -> None:
    host = lab.host("sut")
    run = measuring(stage, pair, host.kill_sshd)

    assert (run.outcome, run.cause, run.restore) == ("failed", "host", "dirty")
    assert "sut" in run.failure
    assert run.failure_hint
    assert row(pair[0]).state == Host.State.DIRTY
    assert row(pair[0]).last_restore["state"] == "again"
    assert row(pair[1]).state == Host.State.READY
    waiting = stage.launch(*pair)
    assert Run.objects.get(pk=waiting.pk).state == Run.State.QUEUED

    host.start_sshd()
    after = restored(stage, pair[0])
    assert (after.state, after.differences) == (Host.State.READY, [])
    assert after.last_restore.get("state") in ("proven", None)  # None: the run that waited has the host already
    stage.until(stage.all_finished)
    waiting.refresh_from_db()
    assert (waiting.outcome, waiting.restore) == ("succeeded", "verified")
    assert stage.broken() == []


def test_a_restart_of_the_sut_is_what_the_run_says_and_the_host_stays_in_service(
    stage: Stage, pair: tuple[Actor, Actor], lab: Lab
) -> None:
    run = measuring(stage, pair, lambda: lab.reboot("sut"))

    assert (run.outcome, run.cause, run.restore) == ("failed", "host", "verified")
    assert run.failure == "sut was restarted during the run."
    assert run.validity not in Run.USABLE
    assert row(pair[0]).state == Host.State.READY
    assert stage.broken() == []


def test_a_host_key_that_changes_under_a_run_quarantines_the_host(
    stage: Stage, pair: tuple[Actor, Actor], lab: Lab
) -> None:
    host = lab.host("sut")

    def swap() -> None:
        host.new_host_key()
        host.end_connections()

    run = measuring(stage, pair, swap)
    try:
        assert (run.outcome, run.restore) == ("failed", "dirty")
        assert "did not prove to be the approved host" in run.failure
        assert "approve it" in run.failure_hint
        assert row(pair[0]).state == Host.State.DIRTY
    finally:
        host.old_host_key()
    assert restored(stage, pair[0]).state == Host.State.READY
    assert stage.broken() == []


def test_a_foreign_change_quarantines_the_host_with_the_difference_shown(
    stage: Stage, pair: tuple[Actor, Actor], lab: Lab
) -> None:
    change = "echo 77 >/proc/sys/net/ipv4/tcp_fin_timeout"
    run = measuring(stage, pair, lambda: lab.exec("sut", "sh", "-c", change))

    assert (run.outcome, run.restore) == ("succeeded", "dirty")
    host = row(pair[0])
    assert host.state == Host.State.DIRTY
    assert "someone else changed net.ipv4.tcp_fin_timeout" in host.differences[0]
    assert "now it is '77'" in host.differences[0]
    assert restored(stage, pair[0]).state == Host.State.DIRTY  # it is still somebody's
    assert restored(stage, pair[0], force=True).state == Host.State.READY
    assert stage.broken() == []


def test_a_full_disk_is_told_before_anything_is_changed(stage: Stage, pair: tuple[Actor, Actor], lab: Lab) -> None:
    stage.until_checked()
    lab.fill_disk("driver")
    run = stage.launch(*pair)
    stage.until(stage.all_finished)
    lab.exec("driver", "rm", "/root/.filler")
    run.refresh_from_db()

    assert run.outcome == "failed"
    assert "driver has 0 MB" in run.failure
    assert pair[0].lines("changes") == []
    assert row(pair[1]).state == Host.State.READY
    assert stage.broken() == []


def test_a_load_that_was_cut_off_for_a_while_never_counts_as_valid(
    stage: Stage, pair: tuple[Actor, Actor], lab: Lab
) -> None:
    """Nobody gets an error: wrk exits with 0, and its figures are of half the time."""
    for _ in range(5):
        cut_at: list[datetime] = []

        def cut(cut_at: list[datetime] = cut_at) -> None:
            lab.cut_data()
            cut_at.append(timezone.now())

        run = measuring(stage, pair, cut, measure_s=6)
        lab.heal()
        assert run.measured_at is not None
        if cut_at[0] - run.measured_at < timedelta(seconds=3):  # else it came when there was little load left
            break

    assert run.validity not in Run.USABLE
    if row(pair[0]).state == Host.State.DIRTY:
        assert restored(stage, pair[0]).state == Host.State.READY
    assert stage.broken() == []
