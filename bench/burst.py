"""Sends a burst of triggers to a real web process, each twice under its key, and counts the runs that came of it.

Runs in the embedded PostgreSQL and Redis of BENCHHUB_DATA_DIR (give it a scratch directory). The runs are only queued:
no worker takes them. Prints Markdown; exit status 1 when one is lost or doubled.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from queue import Empty, Queue

import numpy as np
from django.contrib.auth import get_user_model
from django.core.management import call_command

import bench.django_project  # noqa: F401 - before the models
from bench.sshd import free_port
from bench.web import wait_until_it_answers
from experiments.keeping.demo.stock import stock_of
from experiments.models import Member, Role, Run, Team
from experiments.registry.teams.tokens import issue

HOST = "127.0.0.1"


@dataclass
class Seen:
    """What the clients saw: the run numbers of each key, how long each answer took, what was no 202."""

    numbers: dict[str, list[int]] = field(default_factory=dict)
    took_s: list[float] = field(default_factory=list)
    others: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--triggers", type=int, default=1000)
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--workers", type=int, default=1, help="web processes")
    given = parser.parse_args()
    call_command("migrate", verbosity=0)
    team = Team.objects.create(slug=f"burst-{uuid.uuid4().hex[:8]}", name="Burst")
    user, _ = get_user_model().objects.get_or_create(username="bench", defaults={"email": "bench@localhost.invalid"})
    member = Member.objects.create(team=team, user=user, role=Role.ADMIN)
    _, token = issue(member, name="burst", scopes=["read", "launch"])
    stock = stock_of(team)
    line = stock.lines[0]
    body = {
        "application": line.application.name,
        "recipe": stock.recipes[1].name,
        "workload": line.workload.name,
        "sut": line.sut.name,
        "drivers": list(line.drivers.names),
    }
    port = free_port(HOST)
    server = [sys.executable, "-m", "benchhub.web", "--host", HOST, "--port", str(port)]
    server += ["--workers", str(given.workers)]
    web = subprocess.Popen(server, env={**os.environ, "DATABASE_POOL_SIZE": "16"})
    try:
        wait_until_it_answers(f"http://{HOST}:{port}/cli/benchhub-ci")
        began_s = time.monotonic()
        seen = burst(port, token, body, given.triggers, given.connections)
        took_s = time.monotonic() - began_s
    finally:
        web.terminate()
        web.wait(timeout=30)
    runs = Run.objects.filter(team=team).count()
    print("\n".join(table(given.triggers, given.connections, seen, runs, took_s)))
    if runs != given.triggers or any(len(set(numbers)) != 1 for numbers in seen.numbers.values()):
        raise SystemExit(1)


def burst(port: int, token: str, body: Mapping[str, object], triggers: int, connections: int) -> Seen:
    """Every trigger twice, in random order, over this many connections at once."""
    keys = [f"trigger-{number}" for number in range(triggers)] * 2
    random.Random(1).shuffle(keys)  # noqa: S311 - the same order every time
    waiting: Queue[str] = Queue()
    for key in keys:
        waiting.put(key)
    seen = Seen()
    threads = [
        threading.Thread(target=client, args=(port, token, json.dumps(body).encode(), waiting, seen))
        for _ in range(connections)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return seen


def client(port: int, token: str, body: bytes, waiting: Queue[str], seen: Seen) -> None:
    """One connection; what gets no 202 is sent again, as a CI job would."""
    connection = HTTPConnection(HOST, port, timeout=60)
    while True:
        try:
            key = waiting.get_nowait()
        except Empty:
            connection.close()
            return
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", "Idempotency-Key": key}
        began_s = time.monotonic()
        try:
            connection.request("POST", "/api/v1/runs", body, headers)
            answer = connection.getresponse()
            data = answer.read()
        except (OSError, HTTPException) as error:
            connection.close()
            status, pause_s = type(error).__name__, 0.2
        else:
            status, pause_s = str(answer.status), float(answer.headers.get("Retry-After", 0.2))
        with seen.lock:
            if status == "202":
                seen.took_s.append(time.monotonic() - began_s)
                seen.numbers.setdefault(key, []).append(json.loads(data)["number"])
                continue
            seen.others[status] += 1
        if status in ("401", "403", "404", "422"):
            raise SystemExit(f"HTTP {status}: {data!r}")
        time.sleep(pause_s)
        waiting.put(key)


def table(triggers: int, connections: int, seen: Seen, runs: int, took_s: float) -> list[str]:
    p50_ms, p95_ms, p99_ms = (1000 * float(np.percentile(seen.took_s, q)) for q in (50, 95, 99))
    doubled = sum(len(set(numbers)) > 1 for numbers in seen.numbers.values())
    answers = sum(len(numbers) for numbers in seen.numbers.values())
    others = ", ".join(f"{count} x {status}" for status, count in seen.others.items()) or "none"
    cells = [
        f"{triggers:,}",
        str(connections),
        f"{runs:,}",
        str(triggers - len(seen.numbers)),
        str(doubled + max(0, runs - triggers)),
        f"{answers / took_s:.0f}",
        f"{p50_ms:.0f} / {p95_ms:.0f} / {p99_ms:.0f}",
        others,
    ]
    return [
        "| triggers, each twice | connections | runs | lost | doubled | requests/s | p50 / p95 / p99 ms | sent again |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
        f"| {' | '.join(cells)} |",
    ]


if __name__ == "__main__":
    main()
