"""Measures storing and finding results over the API, beside an MLflow server on the same PostgreSQL in the same run.

Runs have 40 parameters and 30 metrics, series have 10,000 points. Both servers get the requests of their own REST API
from the same client: BenchHub one request per run (or one per 100 runs), MLflow three (create, log-batch, update) and
one more per 1,000 points, which is its limit. Connections stay open, and runs are stored over fresh ones as well: on a
kept connection MLflow's answers wait 40 ms each for the client's acknowledgement. Everything happens in a scratch
directory, which is deleted at the end. Prints Markdown; the exit status is 1 when an aim is missed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bench.mlflow_store import seed_mlflow
from bench.tracking_servers import (
    TEAM,
    Client,
    Server,
    benchhub_server,
    connect,
    database,
    mlflow_server,
    seed_benchhub,
    token_of,
)
from benchhub.embedded import DATABASE_NAME

AIM, BATCH_AIM = 3.0, 15.0
"""Times MLflow's rate: of what is sent one by one, and by the hundred."""
PAGE_AIM_MS = 60.0
PARAMETERS, OWN_METRICS, POINTS, BATCH = 40, 26, 10_000, 100
KNOWN = {"throughput_rps": 5120.5, "latency_p50_ms": 4.5, "latency_p99_ms": 18.2, "errors_total": 0}
MLFLOW_BATCH = 1000
PAGE = 100
WARM_UP = 5
"""Searches that are not timed: they fill the caches, of every worker process too."""

Send = Callable[[Client, int], int]


@dataclass(frozen=True)
class Measured:
    """How much was stored per second, or how long an answer took; None = not measured."""

    name: str
    unit: str
    own: Rate
    other: Rate | None
    aim: float = AIM

    @property
    def missed(self) -> bool:
        return self.own.p50_ms > PAGE_AIM_MS if self.unit == "ms" else self.times is not None and self.times < self.aim

    @property
    def benchhub(self) -> float:
        return self.own.per_s if self.unit != "ms" else self.own.p50_ms

    @property
    def mlflow(self) -> float | None:
        if self.other is None:
            return None
        return self.other.per_s if self.unit != "ms" else self.other.p50_ms

    @property
    def times(self) -> float | None:
        if self.mlflow is None:
            return None
        return self.mlflow / self.benchhub if self.unit == "ms" else self.benchhub / self.mlflow


@dataclass(frozen=True)
class Rate:
    """How much a second, how long one request or sequence of them took, and the server's CPU time for one of it."""

    per_s: float
    p50_ms: float
    p95_ms: float
    cpu_ms: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mlflow", metavar="PROGRAM", help="MLflow's `mlflow`, in a virtual environment of its own")
    parser.add_argument("--seconds", type=float, default=10.0, help="how long each way of storing is measured")
    parser.add_argument("--sizes", type=int, nargs="*", default=(2_000, 20_000, 100_000), help="runs to search among")
    parser.add_argument("--searches", type=int, default=20, help="timed searches per size")
    parser.add_argument("--processes", type=int, default=1, help="web processes of BenchHub (`manage.py up` has one)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="benchhub-ingest-") as place:
        rows = _measure(Path(place), given)
    print("\n".join(table(rows)))
    if any(row.missed for row in rows):
        raise SystemExit(1)


def table(rows: Sequence[Measured]) -> list[str]:
    """The Markdown: one row per thing measured."""
    lines = ["| what | BenchHub | MLflow | times | p95 of a request, ms | CPU of the server for one, ms |"]
    lines.append("| --- | ---: | ---: | ---: | ---: | ---: |")
    for row in rows:
        theirs = "" if row.mlflow is None else f"{row.mlflow:,.1f}"
        times = "" if row.times is None else f"{row.times:.1f}"
        measured = [row.own, *([row.other] if row.other else [])]
        p95 = " / ".join(f"{rate.p95_ms:.0f}" for rate in measured)
        cpu = " / ".join(f"{rate.cpu_ms:.3g}" for rate in measured)
        lines.append(f"| {row.name}, {row.unit} | {row.benchhub:,.1f} | {theirs} | {times} | {p95} | {cpu} |")
    return lines


def _measure(folder: Path, given: argparse.Namespace) -> list[Measured]:
    with contextlib.ExitStack() as stack:
        sockets = stack.enter_context(database(folder))
        theirs = ""
        if given.mlflow:
            server = stack.enter_context(mlflow_server(given.mlflow, folder, sockets))
            theirs = _experiment(server)
        ours = stack.enter_context(benchhub_server(folder, sockets, given.processes))
        rows = []
        _warm_up(ours, one_run)
        if theirs:
            _warm_up(server, mlflow_run(theirs))
        for way in _ways(theirs):
            print(way.name, file=sys.stderr)
            own = hammer(ours, way.clients, given.seconds, way.send, fresh=way.fresh)
            their_send = way.their_send if theirs else None
            other = hammer(server, way.clients, given.seconds, their_send, fresh=way.fresh) if their_send else None
            rows.append(Measured(way.name, way.unit, own, other, way.aim))
        for size in given.sizes:
            print(f"search among {size:,} runs", file=sys.stderr)
            rows.append(_search(folder, sockets, ours, server if theirs else None, size, given.searches))
        return rows


@dataclass(frozen=True)
class Way:
    """One way of storing: how BenchHub gets it, how MLflow does, and over which connections."""

    what: str
    unit: str
    clients: int
    send: Send
    their_send: Send | None = None
    fresh: bool = False
    aim: float = AIM

    @property
    def name(self) -> str:
        clients = f"{self.clients} client{'s' if self.clients > 1 else ''}"
        return f"{self.what}, {clients}{', fresh connections' if self.fresh else ''}"


def _ways(experiment: str) -> Iterator[Way]:
    run, line = mlflow_run(experiment), mlflow_series(experiment)
    for clients in (1, 8):
        for fresh in (False, True):
            yield Way("runs of 40 parameters and 30 metrics", "runs/s", clients, one_run, run, fresh)
        yield Way("the same with a key for repetition", "runs/s", clients, keyed_run)
        for fresh in (False, True):
            yield Way("the same, 100 runs a request", "runs/s", clients, many_runs, run, fresh, BATCH_AIM)
        yield Way("series of 10,000 points", "points/s", clients, one_series, line)
    yield Way("runs that continue a history (trends, change points)", "runs/s", 1, next_of_history)


def _warm_up(server: Server, send: Send) -> None:
    """The first requests of each process compile and connect; a new connection may reach any of them."""
    for _ in range(3 * WARM_UP):
        send(Client(server), -1)


def hammer(server: Server, clients: int, seconds: float, send: Send, *, fresh: bool = False) -> Rate:
    """Let so many clients send without pause for so long; what is under way at the end is waited for, and counts."""
    took_ms: list[float] = []
    stored = [0] * clients
    failed: list[BaseException] = []
    cpu_s, began_s = server.cpu_s, time.perf_counter()

    def work(number: int) -> None:
        client, turn = Client(server, fresh=fresh), 0
        try:
            while (at_s := time.perf_counter()) - began_s < seconds:
                stored[number] += send(client, turn * clients + number)
                took_ms.append((time.perf_counter() - at_s) * 1000)
                turn += 1
        except BaseException as error:  # told by the thread that waits
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]
    return _rate(server, cpu_s, sum(stored), time.perf_counter() - began_s, took_ms)


def _rate(server: Server, cpu_before_s: float, count: int, seconds: float, took_ms: Sequence[float]) -> Rate:
    p50_ms, p95_ms = (float(value) for value in np.percentile(took_ms, [50, 95]))
    return Rate(count / seconds, p50_ms, p95_ms, (server.cpu_s - cpu_before_s) * 1000 / count)


# What BenchHub gets ---------------------------------------------------------------------------------------------------


def result(turn: int, *, points: int = 0, **more: Any) -> dict[str, Any]:
    """A result with 40 parameters and 30 metrics, none like another."""
    own = {f"own_{at}_ms": {"value": turn + at / 7, "unit": "ms", "direction": "lower"} for at in range(OWN_METRICS)}
    series = [{"channel": "rate", "unit": "requests/s", **_points(turn, points)}] if points else []
    return {
        "tool": "bench 1",
        "labels": {"branch": "main", "commit": f"c{turn}"},
        "parameters": {f"key.{at}": f"value {turn + at}" for at in range(PARAMETERS)},
        "metrics": {**KNOWN, "throughput_rps": 5000.0 + turn % 97},
        "own_metrics": own,
        "series": series,
        **more,
    }


def _points(turn: int, points: int) -> dict[str, list[float]]:
    return {"at_s": [float(at) for at in range(points)], "values": [turn + at / 3 for at in range(points)]}


def one_run(client: Client, turn: int) -> int:
    client.send("POST", "/api/v1/results", json.dumps(result(turn)).encode())
    return 1


def keyed_run(client: Client, turn: int) -> int:
    body = json.dumps(result(turn)).encode()
    client.send("POST", "/api/v1/results", body, {"Idempotency-Key": uuid.uuid4().hex})
    return 1


def many_runs(client: Client, turn: int) -> int:
    body = {"results": [result(turn * BATCH + at) for at in range(BATCH)]}
    client.send("POST", "/api/v1/results/batch", json.dumps(body).encode())
    return BATCH


def one_series(client: Client, turn: int) -> int:
    client.send("POST", "/api/v1/results", json.dumps(result(turn, points=POINTS)).encode())
    return POINTS


def next_of_history(client: Client, turn: int) -> int:
    client.send("POST", "/api/v1/results", json.dumps(result(turn, history="bench")).encode())
    return 1


# What MLflow gets -----------------------------------------------------------------------------------------------------

_API = "/api/2.0/mlflow"


def _experiment(server: Server) -> str:
    return str(Client(server).call("POST", f"{_API}/experiments/create", {"name": "bench"})["experiment_id"])


def mlflow_run(experiment: str) -> Send:
    def send(client: Client, turn: int) -> int:
        run_id = _begin(client, experiment)
        at_ms = int(time.time() * 1000)
        metrics = [{"key": name, "value": value, "timestamp": at_ms, "step": 0} for name, value in KNOWN.items()]
        metrics += [
            {"key": f"own_{at}_ms", "value": turn + at / 7, "timestamp": at_ms, "step": 0} for at in range(OWN_METRICS)
        ]
        parameters = [{"key": f"key.{at}", "value": f"value {turn + at}"} for at in range(PARAMETERS)]
        tags = [{"key": "branch", "value": "main"}, {"key": "commit", "value": f"c{turn}"}]
        body = {"run_id": run_id, "metrics": metrics, "params": parameters, "tags": tags}
        client.call("POST", f"{_API}/runs/log-batch", body)
        _end(client, run_id)
        return 1

    return send


def mlflow_series(experiment: str) -> Send:
    def send(client: Client, turn: int) -> int:
        run_id, at_ms = _begin(client, experiment), int(time.time() * 1000)
        for start in range(0, POINTS, MLFLOW_BATCH):
            metrics = [
                {"key": "rate", "value": turn + at / 3, "timestamp": at_ms + at, "step": at}
                for at in range(start, start + MLFLOW_BATCH)
            ]
            client.call("POST", f"{_API}/runs/log-batch", {"run_id": run_id, "metrics": metrics})
        _end(client, run_id)
        return POINTS

    return send


def _begin(client: Client, experiment: str) -> str:
    body = {"experiment_id": experiment, "start_time": int(time.time() * 1000)}
    return str(client.call("POST", f"{_API}/runs/create", body)["run"]["info"]["run_id"])


def _end(client: Client, run_id: str) -> None:
    body = {"run_id": run_id, "status": "FINISHED", "end_time": int(time.time() * 1000)}
    client.call("POST", f"{_API}/runs/update", body)


# Search ---------------------------------------------------------------------------------------------------------------


def _search(folder: Path, sockets: str, ours: Server, theirs: Server | None, size: int, searches: int) -> Measured:
    team = f"{TEAM}-{size}"
    seed_benchhub(folder, team, size)
    _settle(sockets, DATABASE_NAME)
    headers: Mapping[str, str] = {**ours.headers, "Authorization": f"Bearer {token_of(folder, team)}"}
    path = f"/api/v1/runs?label=branch%3Dmain&sort=-throughput_rps&limit={PAGE}"
    own = _times(replace(ours, headers=headers), searches, lambda client: client.call("GET", path)["items"])
    other = None
    if theirs is not None:
        experiment = str(Client(theirs).call("POST", f"{_API}/experiments/create", {"name": team})["experiment_id"])
        with connect(sockets, "mlflow") as connection:
            seed_mlflow(connection, int(experiment), size)
        _settle(sockets, "mlflow")
        body = {
            "experiment_ids": [experiment],
            "filter": "tags.branch = 'main'",
            "order_by": ["metrics.throughput_rps DESC"],
            "max_results": PAGE,
        }
        other = _times(theirs, searches, lambda client: client.call("POST", f"{_API}/runs/search", body)["runs"])
    return Measured(f"search among {size:,} runs: filter, sort, a page of {PAGE}; p50", "ms", own, other)


def _times(server: Server, searches: int, ask: Callable[[Client], Sequence[Any]]) -> Rate:
    client = Client(server)
    took: list[float] = []
    cpu_s = 0.0
    for turn in range(searches + WARM_UP):
        if turn == WARM_UP:
            cpu_s = server.cpu_s
        began_s = time.perf_counter()
        found = ask(client)
        if len(found) != PAGE:
            raise SystemExit(f"A search found {len(found)} runs, not {PAGE}.")
        if turn >= WARM_UP:
            took.append((time.perf_counter() - began_s) * 1000)
    return _rate(server, cpu_s, len(took), sum(took) / 1000, took)


def _settle(sockets: str, name: str) -> None:
    with connect(sockets, name) as connection:
        connection.execute("VACUUM ANALYZE")


if __name__ == "__main__":
    main()
