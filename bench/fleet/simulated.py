"""A simulated host: files, jobs, fence and claim in memory; it does what each command of BenchHub would have done.

Whatever changes something is simulated here, command by command; what is only read comes from `bench.fleet.replies`. A
command that nobody knows fails, and is counted: then the simulation is older than BenchHub.
"""

from __future__ import annotations

import hashlib
import re
import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from bench.fleet.load_report import wrk_report

KILLED_STATUS = 143
FOREVER_S = float("inf")
_SECONDS = re.compile(r"-d ?'?(\d+)s\b")
FENCE_REFUSED, LOST, BUSY = 97, 96, 75


def uptime_s() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def identity(name: str) -> tuple[str, str]:
    """The machine-id and the boot_id of the host of this name."""
    seed = uuid.uuid5(uuid.NAMESPACE_DNS, name)
    return seed.hex, str(uuid.uuid5(seed, "boot"))


@dataclass(frozen=True)
class Answer:
    """What a command came to."""

    out: bytes = b""
    status: int = 0
    err: bytes = b""


@dataclass
class Job:
    """A detached job: it runs for `lasts_s`, or until it is killed."""

    cookie: str
    pid: int
    began_s: float
    lasts_s: float
    prints: bytes
    killed_s: float | None = None

    @property
    def lives(self) -> bool:
        return self.killed_s is None and uptime_s() < self.began_s + self.lasts_s

    @property
    def out(self) -> bytes:
        """A server prints at its start, a load tool at its end; one that was killed before that prints nothing."""
        over = uptime_s() >= self.began_s + self.lasts_s and self.killed_s is None
        return self.prints if self.lasts_s == FOREVER_S or over else b""

    @property
    def status(self) -> int:
        return KILLED_STATUS if self.killed_s is not None else 0


@dataclass
class SimulatedHost:
    """One host. `starts` counts how often each job (by its directory and cookie) was really started here."""

    name: str
    address: str
    home: str
    network: Mapping[str, SimulatedHost] = field(repr=False)
    files: dict[str, bytes] = field(default_factory=dict)
    jobs: dict[str, Job] = field(default_factory=dict)
    links: dict[str, int] = field(default_factory=dict)
    starts: Counter[str] = field(default_factory=Counter)
    fence: int = 0
    holder: str = ""
    holder_name: str = ""
    fired: int = 0
    pids: int = 1000

    def __post_init__(self) -> None:
        self.machine_id, self.boot_id = identity(self.name)

    @property
    def place(self) -> str:
        return "/var/tmp"  # noqa: S108 - a path in the simulated host

    # Files

    def has_directory(self, path: str) -> bool:
        return any(name.startswith(f"{path}/") for name in self.files)

    def remove(self, path: str) -> None:
        for name in [name for name in self.files if name == path or name.startswith(f"{path}/")]:
            del self.files[name]
        for name in [name for name in self.jobs if name.startswith(f"{path}/")]:
            del self.jobs[name]

    def read(self, path: str) -> bytes | None:
        """A file; the outputs of jobs are files, too."""
        directory, _, name = path.rpartition("/")
        if directory in self.jobs and name in ("out", "err"):
            return self.jobs[directory].out if name == "out" else b""
        return self.files.get(path)

    # Jobs

    def start_job(self, directory: str, cookie: str, text: str) -> Answer:
        """The start token: whoever comes second finds the job."""
        word = "already"
        if directory not in self.jobs:
            word = "started"
            self.pids += 1
            self.starts[f"{directory} {cookie}"] += 1
            name = directory.rpartition("/")[2]
            lasts_s, prints = FOREVER_S, b"ready\n"
            if name.startswith("load-"):
                lasts_s = _seconds(text)
                prints = wrk_report(int(lasts_s))
            self.jobs[directory] = Job(cookie, self.pids, uptime_s(), lasts_s, prints)
        job = self.jobs[directory]
        return Answer(f"{word} {job.pid} {int(job.began_s * 100)} {self.boot_id}\n".encode())

    def poll(self, directory: str, out_from: int, max_bytes: int) -> Answer:
        job = self.jobs.get(directory)
        if job is None:
            return Answer(b"absent\n")
        out, ended = job.out, not job.lives
        state, status = ("exited", str(job.status)) if ended else ("running", "-")
        empty = hashlib.sha256(b"").hexdigest()
        sums = f"{len(out)} {hashlib.sha256(out).hexdigest()} 0 {empty}" if ended else "- - - -"
        part = out[out_from:][:max_bytes]
        ticks = int(job.began_s * 100)
        line = f"{state} {status} {job.pid} {ticks} {self.boot_id} {len(out)} 0 no {sums} {len(part)} 0\n"
        return Answer(line.encode() + part)

    def kill_job(self, directory: str) -> Answer:
        job = self.jobs.get(directory)
        if job is not None and job.lives:
            job.killed_s = uptime_s()
        return Answer()

    def serves(self) -> bool:
        """Whether a server runs here."""
        return any("/jobs/server" in directory and job.lives for directory, job in self.jobs.items())

    # Whose the host is

    def take(self, key: str, role: str, fence: int, installation: str, name: str) -> Answer:
        if self.holder in ("", installation) and fence < self.fence:
            return Answer(b"", FENCE_REFUSED, f"the host has seen fence {self.fence}, this is {fence}\n".encode())
        self._hold(fence, installation, name)
        run = f"{self.home}/.benchhub/runs/{key}"
        claim = f"{self.place}/benchhub-claim.{installation}.{key}.{role}"
        self.files[f"{run}/owner"] = f"{installation} {fence} {self.boot_id}\n{name}\n".encode()
        self.files[f"{run}/claim-{role}"] = f"{claim}\n".encode()
        self.files.setdefault(claim, b"0")
        return Answer(f"taken\t{run}\t{claim}\n".encode())

    def fenced(self, args: list[str], inner: Callable[[], Answer]) -> Answer:
        """A change behind the fence: refused for an older holder, a lost claim, or an older connection of a link."""
        fence, link, nth, installation, name, claim = int(args[0]), args[4], int(args[5]), args[6], args[7], args[9]
        if self.holder not in ("", installation):
            return Answer(b"", LOST, f"benchhub-lost: {self.holder_name} has taken it\n".encode())
        if fence < self.fence:
            text = f"benchhub-fence: the host has seen fence {self.fence}, this is {fence}\n"
            return Answer(b"", FENCE_REFUSED, text.encode())
        if claim and claim not in self.files:
            return Answer(b"", LOST, f"benchhub-lost: {claim} is gone\n".encode())
        self._hold(fence, installation, name)
        if nth < self.links.get(link, 0):
            return Answer(b"", BUSY, b"benchhub-fence is held by a newer connection\n")
        self.links[link] = nth
        return inner()

    def _hold(self, fence: int, installation: str, name: str) -> None:
        if (fence, installation) != (self.fence, self.holder):
            self.links.clear()
        self.fence, self.holder, self.holder_name = fence, installation, name

    def survey(self) -> Answer:
        base = f"{self.home}/.benchhub"
        lines = [f"home\t{base}\t{self.name}\t{self.name}\t{self.boot_id}\t{self.place}\t"]
        lines.append(f"fence\t{self.fence or ''}\t{self.holder}\t{self.holder_name}")
        runs = {name[len(base) + 6 :].partition("/")[0] for name in self.files if name.startswith(f"{base}/runs/")}
        lines += [self._told_run(f"{base}/runs/{run}") for run in sorted(runs)]
        return Answer(("\n".join(lines) + "\n").encode())

    def _told_run(self, run: str) -> str:
        owner = self.files.get(f"{run}/owner", b"  \n\n").decode().splitlines()
        installation, fence, boot = [*owner[0].split(), "", "", ""][:3]
        entries = sum(name.startswith(f"{run}/journal/") and name.endswith(".json") for name in self.files)
        timer = self.jobs.get(f"{run}/deadman")
        fate = "armed" if f"{run}/deadline" in self.files else "left" if entries else "nothing"
        jobs = "".join(
            f" {name.rpartition('/')[2]}"
            for name, job in self.jobs.items()
            if name.startswith(f"{run}/jobs/") and job.lives
        )
        lives = "none" if timer is None else "live" if timer.lives else "ended"
        return f"run\t{run}\t{installation}\t{fence}\t{boot}\t{entries}\t{fate}\t{lives}\t{jobs}\t{owner[1]}"

    # The dead-man timer

    def renew(self, run: str, for_s: int) -> Answer:
        """Move the deadline on; a timer that nobody has renewed in time would have put the host back."""
        path = f"{run}/deadline"
        if path in self.files and uptime_s() > float(self.files[path]):
            self.fired += 1
            return Answer(b"0\n")
        self.files[path] = str(uptime_s() + for_s).encode()
        return Answer()


def _seconds(text: str) -> float:
    """The duration in the command line of wrk."""
    found = _SECONDS.search(text)
    if found is None:
        raise ValueError("a load tool whose duration is not in its command")
    return float(found[1])
