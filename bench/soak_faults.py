"""The faults of a soak: each breaks one thing, holds it broken while its context is open, and mends it at the end."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TypeVar

import redis
from django.db import OperationalError, connection

from benchhub.embedded import Places
from experiments.asking.launching.cancelling import cancel_run
from experiments.models import Run
from experiments.registry.errors import Conflict
from lab.lab import Lab
from tests.faults.stage import Actor, Stage
from tests.sshd import SshdHost, connections, cut_connections

LEASE_S = 6
FREE_BYTES = 64 << 10
"""What a nearly full disk has left: less than a run needs."""

WAIT_FOR_A_RUN_S = 15.0

T = TypeVar("T")


@dataclass
class Disturbance:
    """One fault that was injected; `host` is "" when it hit none of the hosts."""

    kind: str
    host: str
    began_at: datetime
    ended_at: datetime | None = None

    def touches(self, run: Run) -> bool:
        """Whether it hit a host of the run while the run had it."""
        if run.started_at is None or self.host not in {host.name for host in run.hosts}:
            return False
        return (self.ended_at is None or self.ended_at >= run.started_at) and (
            run.finished_at is None or self.began_at <= run.finished_at
        )


@dataclass
class World:
    """What faults act on. `leaving` are workers that were told to stop and are on their way out."""

    stage: Stage
    places: Places
    chance: random.Random
    lab: Lab | None = None
    disturbances: list[Disturbance] = field(default_factory=list)
    reboots: dict[str, list[datetime]] = field(default_factory=dict)
    leaving: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def victim(self, *, ends: bool = True) -> str:
        """A worker to harm, rather one that holds a run. What `ends` it spares the one named `steady`."""
        names = [name for name in self.stage.workers if name.startswith("w") or (name == "steady" and not ends)]
        busy = patiently(lambda: {self.stage.worker_of(run) for run in live_runs()})
        return self.chance.choice([name for name in names if name in busy] or names)

    def actor(self) -> Actor:
        """A host to harm that nothing is wrong with yet: one whose link is cut could not be seen to come back."""
        harmed = {disturbance.host for disturbance in self.disturbances if disturbance.ended_at is None}
        actors = list(self.stage.actors.values())
        return self.chance.choice([actor for actor in actors if actor.name not in harmed] or actors)

    def the_lab(self) -> Lab:
        """The lab; only for faults that are `lab_only`."""
        if self.lab is None:
            raise LookupError("this fault needs the lab")
        return self.lab

    def start_worker(self, name: str) -> None:
        self.stage.start_worker(name, lease_s=LEASE_S, concurrency=1)

    def close(self) -> None:
        """End every worker that this process started."""
        for worker in self.leaving:
            worker.kill()
            worker.wait()
        self.stage.close()


def live_runs() -> list[Run]:
    return list(Run.objects.filter(state__in=Run.ACTIVE).select_related("sut", "drivers"))


def patiently(action: Callable[[], T]) -> T:
    """Do it once PostgreSQL answers: the soak restarts it under its own feet."""
    while True:
        try:
            return action()
        except OperationalError:
            connection.close()
            time.sleep(0.3)


def _tuned_suts() -> list[str]:
    return [run.sut.name for run in live_runs() if run.sut and run.state in ("warming_up", "measuring")]


# Each yields the name of the host that it hits, "" when it hits something else, None when there was nothing to hit.


@contextmanager
def worker_killed(world: World) -> Iterator[str | None]:
    name = world.victim()
    world.stage.kill_worker(name)
    yield ""
    world.start_worker(name)


@contextmanager
def worker_frozen(world: World) -> Iterator[str | None]:
    name = world.victim(ends=False)
    world.stage.kill_worker(name, signal.SIGSTOP)
    yield ""
    world.stage.kill_worker(name, signal.SIGCONT)


@contextmanager
def worker_replaced(world: World) -> Iterator[str | None]:
    """As in a rolling deploy: the old one is told to stop, the new one is there at once."""
    name = world.victim()
    world.stage.kill_worker(name, signal.SIGTERM)
    world.leaving.append(world.stage.workers[name])
    world.start_worker(name)
    yield ""


@contextmanager
def redis_killed(world: World) -> Iterator[str | None]:
    _signal(_pids(world.places.redis / "redis.pid"), signal.SIGKILL)
    yield ""


@contextmanager
def redis_flushed(world: World) -> Iterator[str | None]:
    with contextlib.suppress(redis.RedisError), redis.Redis.from_url(world.stage.environment["REDIS_URL"]) as broker:
        broker.flushall()
    yield ""


@contextmanager
def redis_hung(world: World) -> Iterator[str | None]:
    hung = _pids(world.places.redis / "redis.pid")
    _signal(hung, signal.SIGSTOP)
    yield ""
    _signal(hung, signal.SIGCONT)


@contextmanager
def postgres_restarted(world: World) -> Iterator[str | None]:
    """SIGQUIT is what `pg_ctl stop -m immediate` sends; whoever keeps the services starts it again."""
    _signal(_pids(world.places.cluster / "postmaster.pid"), signal.SIGQUIT)
    yield ""


@contextmanager
def sshd_killed(world: World) -> Iterator[str | None]:
    """The connections are gone, and in the lab nobody can log in for a while."""
    actor = world.actor()
    if world.lab is not None:
        host = world.lab.host(actor.name)
        host.kill_sshd()
        yield actor.name
        host.start_sshd()
    else:
        cut_connections(_sshd(actor).pid)
        yield actor.name


@contextmanager
def sshd_frozen(world: World) -> Iterator[str | None]:
    actor = world.actor()
    if world.lab is not None:
        host = world.lab.host(actor.name)
        host.freeze_sshd()
        yield actor.name
        host.thaw_sshd()
    else:
        listener = _sshd(actor).pid
        frozen = [listener, *connections(listener)]
        _signal(frozen, signal.SIGSTOP)
        yield actor.name
        _signal(frozen, signal.SIGCONT)


@contextmanager
def link_cut(world: World, *, half_open: bool = False) -> Iterator[str | None]:
    """The controller loses the host; the load between the hosts goes on."""
    name = world.actor().name
    world.the_lab().cut(name, half_open=half_open, kinds=("management",))
    yield name
    world.the_lab().heal(name)


def link_half_open(world: World) -> AbstractContextManager[str | None]:
    return link_cut(world, half_open=True)


@contextmanager
def host_rebooted(world: World) -> Iterator[str | None]:
    name = world.actor().name
    world.reboots.setdefault(name, []).append(datetime.now().astimezone())
    world.the_lab().reboot(name)
    yield name


@contextmanager
def disk_nearly_full(world: World) -> Iterator[str | None]:
    host = world.the_lab().host(world.actor().name)
    host.fill_disk(leave_bytes=FREE_BYTES)
    yield host.name
    host.exec("rm", "-f", "/root/.filler")


@contextmanager
def run_cancelled(world: World) -> Iterator[str | None]:
    def cancel() -> bool:
        unfinished = list(Run.objects.exclude(state=Run.State.FINISHED))
        live = [run for run in unfinished if run.state != Run.State.QUEUED]
        if unfinished:
            with contextlib.suppress(Conflict):
                cancel_run(world.stage.member, world.chance.choice(live or unfinished))
        return bool(unfinished)

    yield "" if patiently(cancel) else None


@contextmanager
def foreign_change(world: World) -> Iterator[str | None]:
    """Somebody else edits, in the middle of a run, the very file that its recipe has changed."""
    limit_s = time.monotonic() + WAIT_FOR_A_RUN_S
    while not (tuned := patiently(_tuned_suts)) and time.monotonic() < limit_s:
        time.sleep(0.1)
    if not tuned:
        yield None
        return
    name = world.chance.choice(tuned)
    (world.stage.actors[name].root / "etc/app.conf").write_text("edited by somebody else\n")
    yield name


@dataclass(frozen=True)
class Fault:
    """`hold_s`: for how long it lasts at least and at most. `fails`: whether a run on its host may fail for it."""

    kind: str
    inject: Callable[[World], AbstractContextManager[str | None]]
    hold_s: tuple[float, float] = (0.0, 1.0)
    lab_only: bool = False
    fails: bool = False


FAULTS = (
    Fault("worker killed", worker_killed, (0.0, 5.0)),
    Fault("worker frozen past its lease", worker_frozen, (LEASE_S + 2.0, LEASE_S + 12.0)),
    Fault("worker replaced (SIGTERM)", worker_replaced),
    Fault("Redis killed", redis_killed, (2.0, 4.0)),
    Fault("Redis flushed", redis_flushed),
    Fault("Redis hung", redis_hung, (3.0, 20.0)),
    Fault("PostgreSQL immediate restart", postgres_restarted, (3.0, 5.0)),
    Fault("sshd killed", sshd_killed, (1.0, 10.0)),
    Fault("sshd frozen", sshd_frozen, (3.0, 25.0)),
    Fault("link cut", link_cut, (1.0, 40.0), lab_only=True),
    Fault("link half open", link_half_open, (1.0, 40.0), lab_only=True),
    Fault("host rebooted", host_rebooted, (1.0, 2.0), lab_only=True, fails=True),
    Fault("disk nearly full", disk_nearly_full, (5.0, 15.0), lab_only=True, fails=True),
    Fault("run cancelled", run_cancelled),
    Fault("foreign change", foreign_change),
)


def _pids(file: Path) -> list[int]:
    """The process that a pid file names; [] while it is down for another fault."""
    return [int(file.read_text().split()[0])] if file.exists() else []


def _sshd(actor: Actor) -> SshdHost:
    if not isinstance(actor.host, SshdHost):
        raise TypeError(f"{actor.name} is not an sshd of this machine")
    return actor.host


def _signal(pids: list[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
