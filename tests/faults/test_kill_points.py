"""A worker killed at each phase and point: another takes the run up, and nobody could tell afterwards."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from django.conf import settings

from agents.events import PHASES, PhaseName
from experiments.models import Run
from tests.faults.conftest import environment
from tests.faults.dying_worker import POINTS, Point
from tests.faults.stage import WORKER_OPTIONS, Actor, Stage, spoilt, start_worker

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.faults, pytest.mark.slow]

TIMES = {"BENCHHUB_LEASE_S": "2", "BENCHHUB_HEARTBEAT_S": "1"}
Healthy = tuple["subprocess.Popen[bytes]", Path]
Die = Callable[[PhaseName, Point], None]


@pytest.fixture(scope="module")
def sleeper(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Healthy]:
    """A healthy worker for all cases and its log; asleep but when it is needed. It keeps nothing of a case."""
    folder = tmp_path_factory.mktemp("healthy")
    worker = start_worker("healthy", {**environment(folder), **TIMES}, folder / "healthy.log")
    worker.send_signal(signal.SIGSTOP)
    yield worker, folder / "healthy.log"
    worker.kill()
    worker.wait()


@dataclass
class Latecomer:
    """A site's worker that begins when it is woken: one that sleeps would leave its question open at the centre."""

    stage: Stage

    def send_signal(self, _number: int) -> None:
        self.stage.start_worker("healthy", lease_s=2)


@pytest.fixture
def healthy(request: pytest.FixtureRequest, stage: Stage) -> Iterator[subprocess.Popen[bytes] | Latecomer]:
    if stage.centre is not None:
        stage.centre.start(lease_s=2, heartbeat_s=1)
        yield Latecomer(stage)
        return
    worker, log = request.getfixturevalue("sleeper")
    (stage.folder / log.name).symlink_to(log)
    yield worker
    worker.send_signal(signal.SIGSTOP)


@pytest.fixture(scope="module")
def nursery(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[subprocess.Popen[str]]:
    """The process that all the dying workers are forked from."""
    variables = {**environment(tmp_path_factory.mktemp("nursery")), **TIMES}
    command = [sys.executable, "-m", "tests.faults.dying_worker", *WORKER_OPTIONS, "-n", "dying@stage"]
    with subprocess.Popen(
        command, env=variables, cwd=settings.BASE_DIR, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        yield process
        process.kill()


@pytest.fixture
def die(nursery: subprocess.Popen[str], stage: Stage) -> Die:
    """Starts a worker that dies at this point, and returns when it has."""
    note, log = stage.folder / "died", stage.folder / "dying.log"

    def die(phase: PhaseName, point: Point) -> None:
        assert nursery.stdin is not None
        assert nursery.stdout is not None
        of_site = [] if stage.centre is None else stage.centre.arguments("dying", slots=2)
        print(phase, point, note, log, *of_site, file=nursery.stdin, flush=True)
        stage.until(note.exists)
        assert int(nursery.stdout.readline()) == -signal.SIGKILL

    return die


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("phase", PHASES)
def test_a_run_survives_the_death_of_its_worker(
    phase: PhaseName,
    point: Point,
    stage: Stage,
    pair: tuple[Actor, Actor],
    die: Die,
    healthy: subprocess.Popen[bytes] | Latecomer,
) -> None:
    run = stage.launch(*pair)
    die(phase, point)
    assert Run.objects.get(pk=run.pk).state != Run.State.FINISHED
    healthy.send_signal(signal.SIGCONT)
    stage.until(stage.all_finished)
    run.refresh_from_db()
    assert (run.outcome, run.failure, run.restore) == ("succeeded", "", "verified")
    assert run.attempts > 1
    assert spoilt(run) == []
    assert stage.broken() == []
