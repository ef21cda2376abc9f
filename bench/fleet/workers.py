"""The processes under the fleet: workers behind the relay of their site, one for short work, and beat."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from django.conf import settings

from bench.fleet.priority import stand_back
from bench.fleet.site_plan import SitePlan
from bench.memory import memory_bytes
from bench.website import cpu_s
from experiments.registry.workers.queues import RUNS, queue_name
from tests.faults.nursery import process_from_nursery, worker_from_nursery
from tests.faults.stage import surroundings

POOL_SIZE = 6
"""Connections to the database of a worker at most: twelve workers, the web and a reserve fit into the usual 100."""
NICE = 15
"""Workers at sites have processors of their own: here they leave those of this machine to the centre first."""
_QUIET = ("--without-gossip", "--without-mingle", "--without-heartbeat")
_CLAIM = re.compile(r"claimed with fence .* in (\d+) ms")


WEB_LOG = "web.log"


def times_of(lease_s: int, heartbeat_s: int) -> dict[str, str]:
    """The settings for how long a worker has its run, and how often it says that it lives."""
    return {"BENCHHUB_LEASE_S": str(lease_s), "BENCHHUB_HEARTBEAT_S": str(heartbeat_s)}


@dataclass(frozen=True)
class SiteDoor:
    """What the workers of a site need that fetch their runs: its token, and a directory with the key to all hosts."""

    token_file: Path
    keys: Path


@dataclass
class Workers:
    """All worker processes by name; those of a site begin with its name. Their logs are in `folder`."""

    folder: Path
    environment: Mapping[str, str]
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @classmethod
    def of_installation(cls, folder: Path, *, lease_s: int, heartbeat_s: int) -> Workers:
        plain = surroundings("", "", data_dir=folder, key_file=Path(settings.BENCHHUB_KEY_FILE))
        return cls(folder, {**plain, **times_of(lease_s, heartbeat_s), "DATABASE_POOL_SIZE": str(POOL_SIZE)})

    def start_site(self, plan: SitePlan, count: int, threads: int) -> None:
        """Workers that execute runs, and reach the centre through the site's relay alone."""
        ways = {
            "DATABASE_URL": f"postgresql://benchhub@127.0.0.1:{plan.database_port}/benchhub",
            "REDIS_URL": f"redis://127.0.0.1:{plan.broker_port}/0",
            "BENCHHUB_SITE": plan.name,
        }
        for number in range(count):
            name, queue = f"{plan.name}-{number}", queue_name(RUNS, plan.name)
            self._start(name, ["worker", "-n", f"{name}@fleet", "-Q", queue, "-P", "threads", "-c", str(threads)], ways)
            stand_back(self.processes[name].pid, NICE)

    def start_pulling_site(self, plan: SitePlan, count: int, threads: int, door: SiteDoor) -> None:
        """Workers that fetch their runs over HTTP, through the site's relay to the web server."""
        for number in range(count):
            name = f"{plan.name}-{number}"
            given = {
                "--url": f"http://127.0.0.1:{plan.web_port}",
                "--token-file": str(door.token_file),
                "--site": plan.name,
                "--keys": str(door.keys),
                "--state": str(self.folder / f"state-{name}"),
                "--slots": str(threads),
            }
            argv = [word for pair in given.items() for word in pair]
            log, directory = self.folder / f"{name}.log", Path(settings.BASE_DIR)
            self.processes[name] = process_from_nursery("agents.site", argv, self.environment, log, directory)
            stand_back(self.processes[name].pid, NICE)

    def start_centre(self, database_url: str, redis_url: str) -> None:
        """The worker for short work, and beat."""
        ways = {"DATABASE_URL": database_url, "REDIS_URL": redis_url}
        short = ["worker", "-n", "default@fleet", "-Q", "default", "-P", "threads", "-c", "8"]
        self._start("default", short, ways)
        self._start("beat", ["beat", "--pidfile="], ways)

    def _start(self, name: str, arguments: Sequence[str], ways: Mapping[str, str]) -> None:
        quiet = _QUIET if arguments[0] == "worker" else ()
        command = ["-A", "benchhub", *arguments, *quiet]
        environment, log = {**self.environment, **ways}, self.folder / f"{name}.log"
        self.processes[name] = worker_from_nursery(command, environment, log, Path(settings.BASE_DIR))

    @property
    def of_runs(self) -> dict[str, subprocess.Popen[bytes]]:
        return {name: one for name, one in self.processes.items() if name not in ("default", "beat")}

    def kill(self, name: str) -> None:
        self.processes[name].send_signal(signal.SIGKILL)
        self.processes[name].wait()

    def living(self) -> list[str]:
        return [name for name, one in self.of_runs.items() if one.poll() is None]

    def memory_bytes(self) -> int:
        return sum(memory_bytes("VmRSS", self.processes[name].pid) for name in self.living())

    def cpu_s(self) -> float:
        return sum(cpu_s(self.processes[name].pid) for name in self.living())

    def claims_ms(self) -> list[float]:
        """How long each claim of a run took; those of workers that fetch their runs are made by the web server."""
        logs = [self.folder / f"{name}.log" for name in self.of_runs] + [self.folder / WEB_LOG]
        return [float(took) for log in logs if log.exists() for took in _CLAIM.findall(log.read_text(errors="replace"))]

    def close(self) -> None:
        for process in self.processes.values():
            if process.poll() is None:
                process.kill()
        for process in self.processes.values():
            process.wait()
