"""BenchHub's own web process for measurements, as the supervisor starts it, and somebody who is signed in."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

import bench.django_project  # noqa: F401 - before the models
from agents.events import AnyEvent, to_json
from bench.sshd import free_port
from bench.web import ADDRESS, wait_until_it_answers
from benchhub.supervisor import child_specs, preparations
from experiments.keeping.demo.seeding import seed_runs
from experiments.models import Member, Role, Run, RunEvent, Team

BATCH = 5000


@dataclass(frozen=True)
class Website:
    url: str
    pid: int


@contextlib.contextmanager
def website(log: Path | None = None, times: Mapping[str, str] = MappingProxyType({})) -> Iterator[Website]:
    """The web process on loopback, with the database of this process. `times` are settings of its own."""
    port = free_port(ADDRESS)
    spec = child_specs(port)[0]
    environment = {**os.environ, **spec.environment, **times}
    collect = next(one for one in preparations() if one.name == "collectstatic")
    subprocess.run(collect.argv, env=environment, check=True)
    with (log or Path(os.devnull)).open("w") as said:
        process = subprocess.Popen(spec.argv, env=environment, stdout=said, stderr=said)
    try:
        wait_until_it_answers(f"http://{ADDRESS}:{port}/healthz")
        yield Website(f"http://{ADDRESS}:{port}", process.pid)
    finally:
        process.terminate()
        process.wait(timeout=120)


def team_with_runs(slug: str, runs: int, username: str = "bench") -> tuple[Team, Any]:
    """A team of made-up runs, kept between measurements, and a user who is in it."""
    call_command("migrate", verbosity=0)
    user, _ = get_user_model().objects.get_or_create(
        username=username, defaults={"email": f"{username}@localhost.invalid"}
    )
    team, _ = Team.objects.get_or_create(slug=slug, defaults={"name": slug, "is_demo": True})
    Member.objects.get_or_create(team=team, user=user, defaults={"role": Role.ADMIN})
    missing = runs - Run.objects.for_team(team).count()
    if missing > 0:
        seed_runs(team, missing)
    return team, user


def signed_in(user: Any) -> Client:
    client = Client(headers={"host": "localhost"})
    client.force_login(user)
    return client


def session_cookie(client: Client) -> str:
    """The name and value with which another client is the same person."""
    return f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}"


def write_events(run: Run, events: Iterator[AnyEvent]) -> None:
    """Append events to a run in batches, as the recorder numbers them."""
    rows: list[RunEvent] = []
    for event in events:
        run.last_seq += 1
        row = RunEvent(run=run, seq=run.last_seq, kind=event.kind, payload=to_json(event), fence=1, at=timezone.now())
        rows.append(row)
        if len(rows) == BATCH:
            RunEvent.objects.bulk_create(rows)
            rows = []
    RunEvent.objects.bulk_create(rows)
    run.save(update_fields=["last_seq"])


def cpu_s(pid: int) -> float:
    """The CPU time of a process so far, user and system."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rss_bytes(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmRSS:"))


def timed_ms(action: Any) -> float:
    """How long a call takes."""
    start = time.perf_counter()
    action()
    return (time.perf_counter() - start) * 1000
