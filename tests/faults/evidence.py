"""Gathers what happened in a play: rows and events from PostgreSQL, witness files and processes from the hosts."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import redis
from django.db import connection, transaction

from experiments.models import Host, Run, RunEvent
from experiments.registry.runs.file_store import whole
from tests.faults.invariants import Event, HostStory, RunStory, Story

MARK = b"BENCHHUB_JOB="
"""What every process of a job has in its environment, with the job's cookie behind it."""

if TYPE_CHECKING:
    from tests.faults.stage import Actor


def gather(
    actors: Iterable[Actor],
    folder: Path,
    redis_url: str,
    secrets: Mapping[str, str],
    *,
    reboots: Mapping[str, list[datetime]] | None = None,
) -> Story:
    """The whole story. `folder` holds the workers' logs. A broker that does not answer has nothing to tell."""
    actors = tuple(actors)
    older_starts = {actor.name: tuple(actor.lines("starts")) for actor in actors}
    processes = job_processes()
    with transaction.atomic():
        with connection.cursor() as cursor:  # a claim between two queries would look like events of nobody
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        runs = (
            Run.objects.select_related("sut", "drivers")
            .prefetch_related("drivers__hosts", "artifacts", "events")
            .order_by("pk")
        )
        told = tuple(_run(run, processes) for run in runs)
    traces = {
        f"event {event.seq} of run #{run.number}": json.dumps(event.payload) for run in told for event in run.events
    }
    traces |= {
        f"the artifact {name} of run #{run.number}": content.decode("utf-8", "replace")
        for run in told
        for name, (_, content) in run.artifacts.items()
    }
    traces |= {f"the log {path.name}": path.read_text(errors="replace") for path in folder.glob("*.log")}
    traces |= _messages(redis_url)
    hosts = tuple(_host(actor, (reboots or {}).get(actor.name, []), older_starts[actor.name]) for actor in actors)
    return Story(told, hosts, traces, secrets)


def host_values(etc: Path, sysctls: Mapping[str, str]) -> dict[str, str]:
    """The files below `etc` with mode and digest, and the sysctls."""
    files = {}
    for path in sorted(etc.rglob("*")):
        digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "directory"
        files[str(path.relative_to(etc))] = f"{path.stat().st_mode:o} {digest}"
    return {**files, **sysctls}


def _run(run: Run, processes: Iterable[JobProcess]) -> RunStory:
    spec: dict[str, Any] = run.spec or {}
    events = sorted(run.events.all(), key=lambda event: event.seq)
    cookies = {event.payload["cookie"] for event in events if event.kind == "job_intended"}
    return RunStory(
        number=run.number,
        token=str(spec["recipe"]["parameters"].get("token", "")),
        sut=run.sut.name if run.sut else "",
        drivers=tuple(run.drivers.names) if run.drivers else (),
        state=run.state,
        outcome=run.outcome,
        validity=run.validity,
        restore=run.restore,
        fence=run.fence,
        attempts=run.attempts,
        started_at=run.started_at,
        finished_at=run.finished_at,
        errors_total=run.errors_total,
        loads=len(spec["workload"]["phases"]),
        server_watched=spec["application"]["server"]["kind"] == "command",
        finding_levels=tuple(finding["level"] for finding in run.findings),
        events=tuple(Event(e.seq, e.kind, e.payload, e.fence, e.at) for e in events),
        artifacts={a.name: (a.sha256, whole(a)) for a in run.artifacts.all()},
        processes=tuple(f"{p.pid} {p.name}" for p in processes if p.belongs_to(run_directories(events), cookies)),
    )


def _host(actor: Actor, reboots: Iterable[datetime], older_starts: tuple[str, ...]) -> HostStory:
    row = Host.objects.select_related("leased_by").get(pk=actor.row.pk)
    directory = actor.host.home / ".benchhub/runs"
    return HostStory(
        name=actor.name,
        state=row.state,
        differences=(*row.differences, *([row.state_reason] if row.state_reason else [])),
        leased_by=row.leased_by.number if row.leased_by else None,
        before=actor.before,
        after=actor.values(),
        starts=tuple(actor.lines("starts")),
        older_starts=older_starts,
        changes=tuple(actor.lines("changes")),
        directories=tuple(sorted(path.name for path in directory.iterdir())) if directory.exists() else (),
        reboots=tuple(reboots),
    )


@dataclass(frozen=True)
class JobProcess:
    """A live process of some job: its cookie, its command line and where it works."""

    pid: int
    name: str
    cookie: str
    command: str

    def belongs_to(self, directories: Iterable[str], cookies: Iterable[str] = ()) -> bool:
        """Whether it is one of a run: by the cookies that the run noted, or by its directories on the hosts.

        Not by the run's key: tests that run at the same time have databases of their own, each with a first run.
        """
        return self.cookie in cookies or any(directory in self.command for directory in directories)


def run_directories(events: Iterable[RunEvent]) -> set[str]:
    """The run's directory on each of its hosts."""
    return {event.payload["directory"] for event in events if event.kind == "facts_collected"}


def job_processes() -> list[JobProcess]:
    """The live processes of jobs; root sees those inside the lab's hosts, too."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            variables = (process / "environ").read_bytes().split(b"\0")
            dead = (process / "stat").read_bytes().rpartition(b") ")[2][:1] == b"Z"
            name = (process / "comm").read_text().strip()
            command = (process / "cmdline").read_bytes().decode("utf-8", "replace") + str((process / "cwd").readlink())
        except OSError:
            continue  # ended meanwhile, or somebody else's
        cookie = next((v.removeprefix(MARK).decode() for v in variables if v.startswith(MARK)), "")
        if cookie and not dead:
            found.append(JobProcess(int(process.name), name, cookie, command))
    return found


def _messages(redis_url: str) -> dict[str, str]:
    """Every key of the broker with what is in it, as text; the body of a message is in base64."""
    try:
        with redis.Redis.from_url(redis_url, socket_timeout=5, socket_connect_timeout=3) as broker:
            return {f"the Redis key {key.decode()}": _content(broker, key) for key in broker.scan_iter(count=1000)}
    except redis.RedisError:
        return {}


def _content(broker: Any, key: bytes) -> str:
    read: dict[bytes, Callable[[], Iterable[bytes]]] = {
        b"list": lambda: broker.lrange(key, 0, -1),
        b"hash": lambda: [part for pair in broker.hgetall(key).items() for part in pair],
        b"set": lambda: broker.smembers(key),
        b"zset": lambda: broker.zrange(key, 0, -1),
        b"string": lambda: [broker.get(key) or b""],
    }
    items = read.get(broker.type(key), list)()
    return "\n".join([key.decode(), *(text for item in items for text in (item.decode("latin-1"), _body(item)))])


def _body(item: bytes) -> str:
    """The body of a Celery message, "" when it is none."""
    try:
        return base64.b64decode(json.loads(item)["body"]).decode()
    except (ValueError, KeyError, TypeError):
        return ""
