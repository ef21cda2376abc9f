"""Plays runs on a PostgreSQL and a Redis of its own, and breaks them: `python -m tests.faults.services_player FOLDER`.

A process of its own, so that the services of the tests are never touched and nothing has to be pointed elsewhere. It
reads the names of cases from its standard input, and prints for each one line of JSON: "" or what went wrong.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import psycopg
import redis
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import connection

import bench.django_project  # noqa: F401 - sets Django up, which the imports after it need
from benchhub import embedded
from benchhub.health import readiness
from experiments.models import Member, Role, Run, Team
from experiments.registry.database_clock import database_now
from tests.faults.stage import Actor, Stage, has_event, state_is, surroundings, workers_pull
from tests.sshd import running_sshd

LEASE_S = 3
OTHERS_SQL = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND NOT pid = ANY(%s)"
CUT_SQL = OTHERS_SQL.replace("count(*)", "pg_terminate_backend(pid)")


@dataclass(frozen=True)
class Scene:
    """A stage with a SUT and a driver host, and the services under it."""

    stage: Stage
    pair: tuple[Actor, Actor]
    data_dir: Path

    def launch(self, *, measure_s: int = 1) -> Run:
        return self.stage.launch(*self.pair, measure_s=measure_s)

    def start_workers(self) -> None:
        for name in ("one", "two"):
            self.stage.start_worker(name, lease_s=LEASE_S)

    def redis_pid(self) -> int:
        return _first_number(self.data_dir / "redis/redis.pid")

    def restart_postgres(self) -> None:
        """What `pg_ctl restart -m immediate` does: no goodbye to anybody, the log is replayed at the start."""
        os.kill(_first_number(self.data_dir / "postgres/18/postmaster.pid"), signal.SIGQUIT)

    def broker(self) -> redis.Redis:
        return redis.Redis.from_url(self.stage.environment["REDIS_URL"], socket_timeout=60)

    @contextlib.contextmanager
    def without_redis(self) -> Iterator[None]:
        """Redis is killed, and whoever keeps it cannot start it again."""
        keeper = embedded.status(self.data_dir).keeper_pid
        assert keeper is not None
        os.kill(keeper, signal.SIGSTOP)
        os.kill(self.redis_pid(), signal.SIGKILL)
        yield
        os.kill(keeper, signal.SIGCONT)

    @contextlib.contextmanager
    def with_hung_redis(self) -> Iterator[None]:
        pid = self.redis_pid()
        os.kill(pid, signal.SIGSTOP)
        yield
        os.kill(pid, signal.SIGCONT)

    @contextlib.contextmanager
    def with_full_redis(self) -> Iterator[None]:
        self.broker().config_set("maxmemory", "1mb")
        yield
        self.broker().config_set("maxmemory", "256mb")

    @contextlib.contextmanager
    def without_connections(self) -> Iterator[None]:
        """PostgreSQL has no connection left: what others had is cut, and every free one is taken."""
        url = self.stage.environment["DATABASE_URL"]
        with contextlib.ExitStack() as taken:
            mine = [connection_pid()]

            def take_all() -> bool:
                with connection.cursor() as cursor:
                    cursor.execute(CUT_SQL, [mine])
                with contextlib.suppress(psycopg.OperationalError):
                    while True:
                        one = taken.enter_context(psycopg.connect(url, autocommit=True))
                        mine.append(one.info.backend_pid)
                return others(mine) == 0

            self.stage.until(take_all, nudge=False)
            yield

    def until_measuring(self, run: Run) -> None:
        self.stage.until(has_event(run, "load_started", measured=True))

    def until_finished(self, run: Run) -> None:
        self.stage.until(state_is(run, "finished"))

    def assert_all_succeeded(self, *, nudge: bool = True, steady: bool = True) -> None:
        """`nudge`: without beat. `steady`: the clock of the database was never set meanwhile."""
        self.stage.until(self.stage.all_finished, nudge=nudge)
        told = list(Run.objects.values_list("outcome", "failure", "restore"))
        assert set(told) == {("succeeded", "", "verified")}, told
        assert self.stage.broken(steady=steady) == []


def _while(broken: Callable[[Scene], contextlib.AbstractContextManager[None]]) -> Callable[[Scene], None]:
    """A run under way comes to its end, and one that is launched meanwhile starts once the broker is back."""

    def case(scene: Scene) -> None:
        scene.start_workers()
        under_way = scene.launch(measure_s=4)
        scene.until_measuring(under_way)
        with broken(scene):
            later = scene.launch()
            scene.until_finished(under_way)
            later.refresh_from_db()
            assert later.number == under_way.number + 1
        scene.assert_all_succeeded()

    return case


def connections_gone(scene: Scene) -> None:
    """Nobody gets one for longer than a lease lasts: the load goes on, pages say why, and runs go on afterwards."""
    scene.start_workers()
    under_way = scene.launch(measure_s=12)  # longer than it takes to take them all on a busy machine
    scene.until_measuring(under_way)
    with scene.without_connections():
        scene.stage.until(lambda: lease_over_s(under_way) > LEASE_S, nudge=False)
        assert "too many clients" in readiness().failures[0]
    scene.launch()
    scene.assert_all_succeeded()


def redis_flushed(scene: Scene) -> None:
    """Every message is gone: the ones of queued runs, and whatever the workers keep there."""
    runs = [scene.launch() for _ in range(2)]
    scene.broker().flushall()
    scene.start_workers()
    scene.until_measuring(runs[0])
    scene.broker().flushall()
    scene.assert_all_succeeded()


def _restart_at(kind: str, **payload: object) -> Callable[[Scene], None]:
    def case(scene: Scene) -> None:
        scene.start_workers()
        run = scene.launch(measure_s=4)
        scene.stage.until(has_event(run, kind, **payload))
        scene.restart_postgres()
        scene.assert_all_succeeded()

    return case


CASES: dict[str, Callable[[Scene], None]] = {
    "Redis is killed": _while(Scene.without_redis),
    "Redis hangs": _while(Scene.with_hung_redis),
    "Redis is full": _while(Scene.with_full_redis),
    "Redis is flushed": redis_flushed,
    "PostgreSQL has no free connection": connections_gone,
    "PostgreSQL restarts while tuning": _restart_at("step_intended", index=1),
    "PostgreSQL restarts while measuring": _restart_at("load_started", measured=True),
    "PostgreSQL restarts while restoring": _restart_at("phase_started", phase="restore"),
}


def main(folder: Path, cases: Mapping[str, Callable[[Scene], None]]) -> None:
    """Play the cases whose names come in, until no more do."""
    data_dir = Path(settings.BENCHHUB_DATA_DIR)
    urls = embedded.ensure(data_dir)
    call_command("migrate", verbosity=0)
    call_command("createcachetable", verbosity=0)
    key_file = Path(settings.BENCHHUB_KEY_FILE)
    for line in sys.stdin:
        call_command("flush", verbosity=0, interactive=False)
        user = get_user_model().objects.create_user("ada")
        member = Member.objects.create(team=Team.objects.create(slug="perf", name="Perf"), user=user, role=Role.ADMIN)
        place = folder / line.strip().replace(" ", "-")
        for name in ("logs", "sut", "driver"):
            (place / name).mkdir(parents=True)
        environment = surroundings(urls.database_url, urls.redis_url, data_dir=folder, key_file=key_file)
        stage = Stage(place / "logs", member, environment, forks_workers=True, pulls=workers_pull())
        with running_sshd(place / "sut") as sut, running_sshd(place / "driver") as driver:
            pair = stage.add_host("sut", sut), stage.add_host("driver", driver)
            try:
                cases[line.strip()](Scene(stage, pair, data_dir))
                problem = ""
            except Exception:
                problem = f"{traceback.format_exc()}\n{stage.told()}"
            finally:
                stage.close()
        print(json.dumps(problem), flush=True)
    embedded.stop(data_dir)


def connection_pid() -> int:
    """The server process of this process's own connection."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return int(cursor.fetchone()[0])


def others(mine: list[int]) -> int:
    """Connections of anybody else."""
    with connection.cursor() as cursor:
        cursor.execute(OTHERS_SQL, [mine])
        return int(cursor.fetchone()[0])


def lease_over_s(run: Run) -> float:
    """For how long the run's lease has been over."""
    lease_until = Run.objects.values_list("lease_until", flat=True).get(pk=run.pk)
    assert lease_until is not None
    return (database_now() - lease_until).total_seconds()


def _first_number(file: Path) -> int:
    return int(file.read_text().split()[0])


if __name__ == "__main__":
    main(Path(sys.argv[1]), CASES)
