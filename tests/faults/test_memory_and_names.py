"""The kernel's out-of-memory killer takes a worker or the server under test; names of hosts are not resolved."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments.models import Host, Run
from tests import needs
from tests.clocks import COMPILER, compiled
from tests.faults.memory import TightGroup, can_kill
from tests.faults.stage import Actor, Stage, has_event
from tests.sshd import cut_connections

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.faults, pytest.mark.slow]

REFUSED = 8
"""Questions for names that get no answer: each host is asked for again after ever longer pauses."""
NAMES_SHIM = Path(__file__).parents[1] / "names_shim.c"
needs_groups = needs.marked(can_kill(), "control groups that limit memory", needs.RIGHTS)


@pytest.fixture
def tight() -> Iterator[TightGroup]:
    group = TightGroup("tests")
    yield group
    group.remove()


def under_load(stage: Stage, pair: tuple[Actor, Actor]) -> Run:
    """A run whose measured load does not end before the driver host's `release`."""
    pair[1].hold()
    run = stage.launch(*pair, warm_up_s=0, measure_s=2)
    stage.until(has_event(run, "load_started", measured=True))
    return run


def server_of(sut: Actor) -> int:
    """The process of the server under test."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        if f"{sut.inside}/server.py".encode() in path.read_bytes():
            return int(path.parent.name)
    raise AssertionError("no server runs")


@needs_groups
def test_a_worker_killed_for_want_of_memory_loses_no_run(
    stage: Stage, pair: tuple[Actor, Actor], tight: TightGroup
) -> None:
    for name in ("one", "two"):
        stage.start_worker(name, lease_s=2)
    run = under_load(stage, pair)
    victim = stage.worker_of(run)

    tight.take_in(stage.workers[victim].pid)
    stage.until(lambda: stage.workers[victim].poll() is not None)

    assert (stage.workers[victim].returncode, tight.kills) == (-signal.SIGKILL, 1)
    stage.until(lambda: stage.worker_of(run) not in ("", victim))
    pair[1].release()
    stage.until(stage.all_finished)
    run.refresh_from_db()
    assert (run.outcome, run.failure, run.restore) == ("succeeded", "", "verified")
    assert stage.broken() == []


@needs_groups
def test_a_server_killed_for_want_of_memory_is_no_result_and_the_host_is_put_back(
    stage: Stage, pair: tuple[Actor, Actor], tight: TightGroup
) -> None:
    stage.start_worker("one")
    run = under_load(stage, pair)

    tight.take_in(server_of(pair[0]))
    stage.until(lambda: tight.kills == 1)
    pair[1].release()
    stage.until(stage.all_finished)

    run.refresh_from_db()
    assert run.validity != "valid"
    assert run.outcome == "failed"
    assert "killed" in run.failure
    assert run.restore == "verified"
    assert stage.broken() == []


@pytest.fixture
def failing(stage: Stage, pair: tuple[Actor, Actor], tmp_path: Path) -> Path:
    """A worker for hosts with names; while this file is there, no name is resolved."""
    Host.objects.update(address="localhost")
    for actor in pair:
        actor.row.refresh_from_db()
    path = tmp_path / "failing"
    shim = {"LD_PRELOAD": str(compiled(NAMES_SHIM, tmp_path)), "NAMES_SHIM_FILE": str(path)}
    stage.start_worker("one", preload=shim)
    return path


@needs.program(COMPILER)
def test_names_that_are_not_resolved_under_the_load_cost_no_run(
    stage: Stage, pair: tuple[Actor, Actor], failing: Path
) -> None:
    run = under_load(stage, pair)

    failing.touch()
    for actor in pair:
        cut_connections(actor.host.pid)  # type: ignore[attr-defined]  # while they last nobody asks
    stage.until(lambda: failing.stat().st_size > REFUSED)
    failing.unlink()
    pair[1].release()
    stage.until(stage.all_finished)

    run.refresh_from_db()
    assert (run.outcome, run.failure, run.restore) == ("succeeded", "", "verified")
    assert stage.broken() == []
