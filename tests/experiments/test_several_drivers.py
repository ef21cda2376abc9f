"""Two driver hosts load one server with nothing left out: PostgreSQL, Redis, Celery workers, three SSH hosts, wrk."""

from __future__ import annotations

import pytest

from experiments.judging.evidence.load_parts import load_parts
from experiments.models import Host, Team
from tests import needs
from tests.faults.conftest import pulls, sshd_hosts, stage
from tests.faults.stage import Actor, Stage, has_event, state_is
from tests.sshd import SshdHost

__all__ = ["pulls", "sshd_hosts", "stage"]

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.slow,
    needs.program("wrk"),
]


@pytest.fixture
def three(stage: Stage, sshd_hosts: tuple[SshdHost, ...]) -> tuple[Actor, Actor, Actor]:
    """A SUT and two driver hosts. Their tools may begin apart: this machine has many other things to do."""
    Team.objects.filter(pk=stage.member.team_id).update(
        thresholds={"start_spread_warn_ratio": 1.0, "start_spread_invalid_ratio": 1.0}
    )
    return (
        stage.add_host("sut", sshd_hosts[0], roles="sut"),
        stage.add_host("one", sshd_hosts[1], roles="driver"),
        stage.add_host("two", sshd_hosts[2], roles="driver"),
    )


def test_the_run_of_a_killed_worker_is_adopted_while_both_hosts_go_on_loading(
    stage: Stage, three: tuple[Actor, Actor, Actor]
) -> None:
    for name in ("one", "two"):
        stage.start_worker(name)
    run = stage.launch(*three, warm_up_s=0, measure_s=12)
    stage.until(has_event(run, "samples", role="driver-2"))
    stage.kill_worker(stage.worker_of(run))
    stage.until(state_is(run, "finished"))
    run.refresh_from_db()
    assert (run.outcome, run.failure, run.restore, run.errors_total) == ("succeeded", "", "verified", 0)
    assert run.attempts > 1
    assert [len(actor.lines("starts")) for actor in three] == [1, 1, 1], "the server, and one load on each driver host"
    assert not Host.objects.exclude(state="ready", leased_by=None).exists()
    assert stage.broken() == []

    parts = load_parts(run)
    assert [part.driver for part in parts] == ["one", "two"]
    assert [part.connections for part in parts] == [1, 1]
    assert run.throughput_rps == pytest.approx(sum(part.throughput_rps or 0 for part in parts))
    assert sum(part.share_ratio or 0 for part in parts) == pytest.approx(1)
    assert all(part.late_s is not None and part.driver_cpu_ratio is not None for part in parts)
    findings = {finding["check"]: finding for finding in run.findings}
    assert "start_together" in findings, "how far apart they began is judged; on a busy machine it may be far"
    assert run.latency_p99_ms is None, "wrk prints no histogram, and percentiles are not averaged"
    assert {series.role for series in run.samples.all()} == {"sut", "driver", "driver-2"}


def test_a_driver_host_that_refuses_the_login_leaves_nothing_applied_and_all_hosts_free(
    stage: Stage, three: tuple[Actor, Actor, Actor]
) -> None:
    stage.start_worker("one")
    stage.until_checked()
    Host.objects.filter(name="two").update(user="nobody-here")
    run = stage.launch(*three)
    stage.until(state_is(run, "finished"))
    run.refresh_from_db()
    assert (run.outcome, run.restore) == ("failed", "")
    assert "two" in run.failure
    assert not run.events.filter(kind__in=("facts_collected", "step_intended", "job_intended")).exists()
    assert [actor.lines("starts") for actor in three] == [[], [], []]
    assert not Host.objects.exclude(state="ready", leased_by=None).exists()
    assert stage.broken() == []
