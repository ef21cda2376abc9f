"""A stage for whole runs under faults: hosts with witnesses, real Celery workers, launches, and waiting for an end.

    stage = Stage(folder, admin, surroundings(database_url, redis_url, key_file=...))
    sut, driver = stage.add_host("sut", sshd_a), stage.add_host("driver", sshd_b)
    stage.start_worker("one", lease_s=2)
    run = stage.launch(sut, driver, measure_s=2)
    stage.until(stage.all_finished)
    assert stage.broken() == []

It needs no pytest, so `bench.soak` plays on it as well. Hosts are whatever has the fields of `HostLike`: the plain sshd
of `tests.sshd`, or a host of the lab. On each of them the directory `stage` holds what is watched:

    etc/app.conf, etc/held    what the recipe changes; afterwards it must be as before
    starts                    "start COOKIE" for each start of server or load tool
    changes                   "begin TOKEN" and "end TOKEN" of the recipe's step, TOKEN is a parameter of each launch
    hold                      while it is there, load tools do not end
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from django.conf import settings
from django.db import OperationalError, connection

from agents.remote.address import fingerprint
from benchhub.processes import spawn, wait_until
from experiments.asking.launching.choices import Choice
from experiments.asking.launching.launch import launch_run
from experiments.models import Application, Host, Member, Recipe, Run, RunEvent, Workload
from experiments.registry.documents.versions import save_version
from experiments.registry.hosts.inventory import add_host, approve_key
from experiments.tasks import dispatch
from tests.agents.run_lab import free_port
from tests.faults.centre import Centre
from tests.faults.evidence import gather, host_values, job_processes, run_directories
from tests.faults.invariants import Story, check
from tests.faults.nursery import worker_from_nursery
from tests.faults.programs import SERVER, STEP, WITNESS, write_program

PATIENCE_S = 600.0
"""Only what never happens may take that long: nothing here is measured."""
LOOK_S, NUDGE_S = 0.1, 0.5
TOOL_TIMEOUT_S = 600
"""A machine that stands still for a while gives slow answers; they are no failed requests."""
OF_THE_MACHINE = frozenset(
    ("driver_cpu", "duration", "neighbours", "network_stall", "stall", "steal", "swap", "throttle")
)
"""Checks of a run that a busy machine fails; no worker that was killed or frozen can."""
WORKERS = "BENCHHUB_TEST_WORKERS"
"""The variable by which a list of faults has other workers."""
WORKER_OPTIONS = (
    "-P", "threads", "--without-gossip", "--without-mingle", "--without-heartbeat",
)  # fmt: skip


def workers_pull() -> bool:
    """Whether the workers of all plays are those of a site, which fetch their runs over HTTPS."""
    return os.environ.get(WORKERS) == "pull"


class HostLike(Protocol):
    """A host that a stage can use. `home` is the login's home as this machine sees it."""

    @property
    def address(self) -> str: ...
    @property
    def port(self) -> int: ...
    @property
    def user(self) -> str: ...
    @property
    def host_key(self) -> str: ...
    @property
    def private_key(self) -> str: ...
    @property
    def home(self) -> Path: ...


@dataclass(frozen=True)
class Actor:
    """A host on the stage. `root` is its watched directory seen from here, `inside` the same path on the host."""

    name: str
    host: HostLike
    row: Host
    root: Path
    inside: str
    port: int
    before: Mapping[str, str]
    sysctl: Mapping[str, str] = field(default_factory=dict)
    read_sysctl: Callable[[str], str] | None = None

    def lines(self, name: str) -> list[str]:
        """The lines of a witness file, [] before the first."""
        path = self.root / name
        return path.read_text().splitlines() if path.exists() else []

    def hold(self) -> None:
        """From now on a load tool that is started here does not end before `release`: no load is over too soon."""
        (self.root / "hold").touch()

    def release(self) -> None:
        (self.root / "hold").unlink()

    def values(self) -> dict[str, str]:
        """What the recipe changes on this host, as it is now: files with their mode, and sysctls."""
        return host_values(self.root / "etc", {key: self._sysctl(key) for key in self.sysctl})

    def _sysctl(self, key: str) -> str:
        return self.read_sysctl(key) if self.read_sysctl else ""


HOST_NETWORKS = "127.0.0.0/8,::1/128"
"""Where hosts may be in a play: they are sshds of this machine."""


def surroundings(database_url: str, redis_url: str, *, data_dir: Path, key_file: Path) -> dict[str, str]:
    """The environment of a worker on that database and broker: the product's own settings, nothing of the tests'."""
    of_tests = ("BENCHHUB_", "DJANGO_", "PYTEST_")
    plain = {name: value for name, value in os.environ.items() if not name.startswith(of_tests)}
    return {
        **plain,
        "DJANGO_SETTINGS_MODULE": "benchhub.settings",
        "DATABASE_URL": database_url,
        "REDIS_URL": redis_url,
        "SECRET_KEY": "pepper-of-the-stage-" + "x" * 40,
        "ALLOWED_HOSTS": "localhost",
        "BENCHHUB_HOST_NETWORKS": "127.0.0.0/8,::1/128",  # the hosts of a stage may be on this machine
        "BENCHHUB_KEY_FILE": str(key_file),
        "BENCHHUB_DATA_DIR": str(data_dir),
        "DATABASE_POOL_SIZE": "10",  # as wherever workers are started
    }


class Stage:
    """One play. `close` kills the workers; the hosts belong to whoever made them.

    With `forks_workers` they come from a nursery, which spares what each start costs (`tests.faults.nursery`). With
    `pulls` all hosts are at a site whose workers fetch their runs over HTTPS; the hosts' keys are with them alone.
    """

    def __init__(
        self,
        folder: Path,
        member: Member,
        environment: Mapping[str, str],
        *,
        forks_workers: bool = False,
        pulls: bool = False,
    ) -> None:
        self.folder = folder
        self.member = member
        self.environment = dict(environment)
        self.forks_workers = forks_workers
        self.actors: dict[str, Actor] = {}
        self.workers: dict[str, subprocess.Popen[bytes]] = {}
        self.password = f"planted-{secrets.token_hex(12)}"
        self._launched = 0
        self.centre: Centre | None = None
        if pulls:
            (folder / "site").mkdir()
            self.centre = Centre(folder / "site", member, self.environment)

    # Hosts

    def add_host(
        self,
        name: str,
        host: HostLike,
        *,
        roles: str = "both",
        root: Path | None = None,
        inside: str = "",
        data_address: str = "",
        bind: str = "127.0.0.1",
        python: str = sys.executable,
        sysctl: Mapping[str, str] | None = None,
        read_sysctl: Callable[[str], str] | None = None,
    ) -> Actor:
        """Register a host with its key approved, and lay out what is watched on it.

        `root` is where it is laid out, seen from here, and `inside` the same place as the host sees it, which must be
        where recipes may write; both are `stage` in the home if not given. `bind` is what its server listens on, and
        `data_address` where the others reach it, when that is not `host.address`. `sysctl` are keys that each recipe on
        this SUT sets, read by `read_sysctl`: only for hosts whose sysctls are their own.
        """
        root = root or host.home / "stage"
        inside = inside or str(root)
        shutil.rmtree(root, ignore_errors=True)
        shutil.rmtree(host.home / ".benchhub", ignore_errors=True)
        (root / "etc").mkdir(parents=True)
        (root / "etc/app.conf").write_text("as it was\n")
        (root / "etc/app.conf").chmod(0o640)
        write_program(root / "wrk", WITNESS.format(root=inside, program="wrk"))
        (root / "server.py").write_text(SERVER)
        write_program(root / "server", WITNESS.format(root=inside, program=f"{python} {inside}/server.py {bind}"))
        actor = Actor(
            name,
            host,
            self._registered(name, host, roles, data_address),
            root,
            inside,
            free_port(),
            {},
            sysctl or {},
            read_sysctl,
        )
        self.actors[name] = Actor(**{**vars(actor), "before": actor.values()})
        return self.actors[name]

    def _registered(self, name: str, host: HostLike, roles: str, data_address: str) -> Host:
        if self.centre is not None:
            self.centre.keep_key(name, host.private_key)
        row = add_host(
            self.member, name=name, address=host.address, port=host.port, user=host.user,
            private_key=host.private_key if self.centre is None else None, roles=roles, data_address=data_address,
            site=self.centre.site if self.centre else None,
        )  # fmt: skip
        Host.objects.filter(pk=row.pk).update(offered_host_key=host.host_key)
        approve_key(self.member, row, fingerprint(host.host_key))
        row.refresh_from_db()
        return row

    # Workers

    def start_worker(
        self,
        name: str,
        *,
        lease_s: int = 3,
        heartbeat_s: int = 1,
        concurrency: int = 2,
        site: str = "",
        preload: Mapping[str, str] | None = None,
    ) -> subprocess.Popen[bytes]:
        """A real worker process, of a site; its log is NAME.log in the folder. `preload` as `tests.clocks` makes it."""
        preload = {**(preload or {}), **({"BENCHHUB_SITE": site} if site else {})}
        times = {"BENCHHUB_LEASE_S": str(lease_s), "BENCHHUB_HEARTBEAT_S": str(heartbeat_s), **preload}
        environment, log = {**self.environment, **times}, self.folder / f"{name}.log"
        if self.centre is not None:
            self.centre.start(lease_s, heartbeat_s)
            self.workers[name] = self.centre.start_worker(name, log, slots=concurrency, preload=preload)
            return self.workers[name]
        self.workers[name] = self._celery(_worker_arguments(name, concurrency), environment, log)
        return self.workers[name]

    def start_beat(self, *, preload: Mapping[str, str] | None = None) -> None:
        """The real beat in place of `until`'s nudges; it counts among the workers."""
        arguments, environment = ["-A", "benchhub", "beat", "--pidfile="], {**self.environment, **(preload or {})}
        self.workers["beat"] = self._celery(arguments, environment, self.folder / "beat.log")

    def _celery(self, arguments: list[str], environment: Mapping[str, str], log: Path) -> subprocess.Popen[bytes]:
        if self.forks_workers:
            return worker_from_nursery(arguments, environment, log, Path(settings.BASE_DIR))
        return _spawn([sys.executable, "-m", "celery", *arguments], environment, log)

    def kill_worker(self, name: str, how: int = signal.SIGKILL) -> None:
        """Send the worker a signal; after SIGKILL it is waited for."""
        worker = self.workers[name]
        worker.send_signal(how)
        if how == signal.SIGKILL:
            worker.wait()

    def worker_of(self, run: Run) -> str:
        """The name of the worker that holds the run now, "" when none does."""
        owner = Run.objects.values_list("owner", flat=True).get(pk=run.pk)
        pid = int(owner.split(":")[1]) if owner else 0
        return next((name for name, worker in self.workers.items() if worker.pid == pid), "")

    # Runs

    def choice(
        self,
        sut: Actor,
        *drivers: Actor,
        warm_up_s: int = 1,
        measure_s: int = 1,
        token: str = "",
        steps: tuple[dict[str, Any], ...] = (),
    ) -> Choice:
        """The documents of a run: a server that starts at once, a recipe whose changes are watched, then `steps`.

        Several driver hosts must have their `stage` in the login's home there.
        """
        server = {
            "kind": "command",
            "argv": [f"{sut.inside}/server", str(sut.port)],
            "files": {"index.html": "hello\n"},
            "port": sut.port,
            "cpus": _cpus()[0],
            "ready": {"body_contains": "hello", "timeout_s": 600},
        }
        tool = {
            "kind": "wrk", "connections": 2, "threads": 1, "timeout_s": TOOL_TIMEOUT_S, "binary": self._tool(drivers),
        }  # fmt: skip
        phases = [("warm_up", warm_up_s), ("measure", measure_s)]
        load = {
            "driver": tool,
            "path": "/",
            "cpus": _cpus()[1],
            "phases": [{"name": kind, "kind": kind, "duration_s": seconds} for kind, seconds in phases if seconds],
        }
        return Choice(
            application=save_version(self.member, Application, f"server of {sut.name}", {"server": server}),
            recipe=save_version(self.member, Recipe, f"tuning of {sut.name}", _recipe(sut, steps)),
            workload=save_version(self.member, Workload, f"load of {drivers[0].name}", load),
            sut=sut.row,
            drivers=[driver.row for driver in drivers],
            parameters={"token": token or self._token(), "password": self.password},
        )

    def launch(self, sut: Actor, *drivers: Actor, **choice: Any) -> Run:
        """Queue a run; the keywords are those of `choice`."""
        return launch_run(self.member, self.choice(sut, *drivers, **choice))

    def _tool(self, drivers: Sequence[Actor]) -> str:
        """The load tool at one path that every driver host knows."""
        if len(drivers) == 1:
            return f"{drivers[0].inside}/wrk"
        found = self.folder / "wrk"
        write_program(found, '#!/bin/sh\nexec "$HOME/stage/wrk" "$@"\n')
        return str(found)

    def _token(self) -> str:
        self._launched += 1
        return f"t{self._launched}-{secrets.token_hex(4)}"

    # Waiting and judging

    def until(self, condition: Callable[[], bool], *, seconds: float = PATIENCE_S, nudge: bool = True) -> None:
        """Wait for it; meanwhile do what beat does every five seconds, unless not to `nudge`. Else AssertionError."""

        nudged_s = 0.0

        def looked() -> bool:
            nonlocal nudged_s
            try:
                if nudge and time.monotonic() - nudged_s > NUDGE_S:
                    dispatch()
                    nudged_s = time.monotonic()
                return condition()
            except OperationalError:  # PostgreSQL is away; it may be the very fault
                connection.close()
                return False

        if not wait_until(looked, seconds=seconds, interval_s=LOOK_S):
            raise AssertionError(f"this did not happen in {seconds:.0f} s\n{self.told()}")

    def until_checked(self) -> None:
        """The tests of the connections that adding the hosts asks for are over: later, they find what a play breaks."""
        self.until(lambda: all(host.last_check.get("state") == "ok" for host in Host.objects.all()))

    def all_finished(self) -> bool:
        return not Run.objects.exclude(state=Run.State.FINISHED).exists()

    def told(self) -> str:
        """Every run in a line, and the end of each worker's log: for the message of a test that failed."""
        fields = ("number", "state", "outcome", "validity", "restore", "attempts", "fence", "owner", "failure")
        rows = [str(row) for row in Run.objects.order_by("pk").values_list(*fields)]
        logs = [f"--- {path.name}\n{path.read_text(errors='replace')[-2000:]}" for path in self.folder.glob("**/*.log")]
        return "\n".join([*rows, *logs])

    def story(self) -> Story:
        """All evidence of what happened, as `invariants.check` wants it."""
        return gather(self.actors.values(), self.folder, self.environment["REDIS_URL"], self.secrets())

    def broken(self, *, ended: bool = True, steady: bool = True) -> list[str]:
        """The invariants that do not hold. `ended` = every run must be finished by now; `steady` as in `check`."""
        return check(self.story(), ended=ended, steady=steady)

    def secrets(self) -> dict[str, str]:
        """What must stand nowhere."""
        keys = {
            f"the private key of {actor.name}": actor.host.private_key.splitlines()[-3]
            for actor in self.actors.values()
        }
        return {**keys, "the password": self.password, "the pepper": self.environment["SECRET_KEY"]}

    def close(self) -> None:
        """End the workers, and what runs that never came to their end have left on this machine."""
        for worker in self.workers.values():
            if worker.poll() is None:
                worker.kill()
        for worker in self.workers.values():
            worker.wait()
        if self.centre is not None:
            self.centre.close()
        directories = run_directories(RunEvent.objects.filter(kind="facts_collected"))
        for process in job_processes():
            if process.belongs_to(directories):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGKILL)


def start_worker(
    name: str, environment: Mapping[str, str], log: Path, *, concurrency: int = 2
) -> subprocess.Popen[bytes]:
    """A Celery worker in a process of its own."""
    return _spawn([sys.executable, "-m", "celery", *_worker_arguments(name, concurrency)], environment, log)


def _worker_arguments(name: str, concurrency: int) -> list[str]:
    """Without `-Q`, it takes messages from both queues of its site."""
    return ["-A", "benchhub", "worker", *WORKER_OPTIONS, "-c", str(concurrency), "-n", f"{name}@stage"]


def _spawn(command: list[str], environment: Mapping[str, str], log: Path) -> subprocess.Popen[bytes]:
    """It is killed with the process that plays, however that one ends."""
    directory = Path(settings.BASE_DIR)
    return spawn(command, log=log, environment=environment, directory=directory, on_parent_death=signal.SIGKILL)


def state_is(run: Run, *states: str) -> Callable[[], bool]:
    return lambda: Run.objects.filter(pk=run.pk, state__in=states).exists()


def spoilt(run: Run) -> list[str]:
    """Why the run does not count, but for what a busy machine does to a load of a second; [] when it was measured."""
    invalid = [finding for finding in run.findings if finding["level"] == "invalid"]
    named = [f"{one['check']}: {one['sentence']}" for one in invalid if one["check"] not in OF_THE_MACHINE]
    return named if run.validity else ["it was not judged"]


def has_event(run: Run, kind: str, **payload: Any) -> Callable[[], bool]:
    """Whether the run's log has an event of that kind with these fields. AssertionError once it never will."""
    fields = {f"payload__{name}": value for name, value in payload.items()}

    def has() -> bool:
        ended = Run.objects.filter(pk=run.pk, state=Run.State.FINISHED).first()
        found = run.events.filter(kind=kind, **fields).exists()
        if ended is not None and not found:
            raise AssertionError(f"run #{run.number} ended ({ended.outcome}) without {kind}: {ended.failure}")
        return found

    return has


def _recipe(sut: Actor, steps: tuple[dict[str, Any], ...]) -> dict[str, Any]:
    token = {"type": "str", "description": "names the launch in the witness file"}
    recipe: list[dict[str, Any]] = [
        {**STEP, "arguments": [sut.inside, "${token}"]},
        {"kind": "environment", "variables": {"APP_PASSWORD": "${password}"}},
    ]
    if os.geteuid() == 0:  # a file outside the instance is written as root
        recipe.append({"kind": "file", "path": f"{sut.inside}/etc/app.conf", "content": "tuned by ${token}\n"})
    if sut.sysctl:
        recipe.append({"kind": "sysctl", "values": dict(sut.sysctl)})
    return {"parameters": {"token": token, "password": {"type": "str"}}, "steps": [*recipe, *steps]}


def _cpus() -> tuple[str, str]:
    """A CPU for the server and one for the load tool; the same where there is only one."""
    cpus = sorted(os.sched_getaffinity(0))
    return str(cpus[0]), str(cpus[-1])
