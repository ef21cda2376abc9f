"""Whole data from BenchHub and from MLflow, each by its own client, beside each other."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from bench.mlflow_store import OTHER_COLUMNS, seed_mlflow
from bench.tracking_servers import (
    ADDRESS,
    TEAM,
    Client,
    benchhub_server,
    connect,
    database,
    mlflow_server,
    seed_benchhub,
    token_of,
)
from benchhub.embedded import DATABASE_NAME, PROJECT_DIR

COLUMNS = 70
MORE_FIGURES = (
    "UPDATE experiments_run SET metrics = metrics || (SELECT jsonb_object_agg('own_' || n || '_ms', "
    "random() * 100 + number * 0) FROM generate_series(1, %s) n) WHERE team_id = %s"
)
"""Gives the runs of a team so many figures more."""

_OURS = """
import sys, time
sys.path.insert(0, sys.argv[3])
from benchhub_client import Hub
hub = Hub(sys.argv[1], sys.argv[2])
began_s = time.perf_counter()
frame = hub.runs()
print(time.perf_counter() - began_s, *frame.shape)
"""
_THEIRS = """
import sys, time
import mlflow
mlflow.set_tracking_uri(sys.argv[1])
began_s = time.perf_counter()
frame = mlflow.search_runs(experiment_ids=[sys.argv[2]], max_results=int(sys.argv[3]))
print(time.perf_counter() - began_s, *frame.shape)
"""


def compare(mlflow: str, runs: int, times: int) -> float:
    """How many times as long MLflow takes as BenchHub for all `runs`, by the medians; both are printed as they come."""
    with tempfile.TemporaryDirectory(prefix="benchhub-frames-") as scratch, contextlib.ExitStack() as stack:
        folder = Path(scratch)
        sockets = stack.enter_context(database(folder))
        ours = stack.enter_context(benchhub_server(folder, sockets, 1))
        theirs = stack.enter_context(mlflow_server(mlflow, folder, sockets))
        team = f"{TEAM}-{runs}"
        seed_benchhub(folder, team, runs)
        with connect(sockets, DATABASE_NAME) as connection:
            (key,) = connection.execute("SELECT id FROM experiments_team WHERE slug = %s", [team]).fetchone() or (0,)
            connection.execute(MORE_FIGURES, [COLUMNS - 34, key])
            connection.execute("VACUUM ANALYZE")
        made = Client(theirs).call("POST", "/api/2.0/mlflow/experiments/create", {"name": team})
        experiment = str(made["experiment_id"])
        with connect(sockets, "mlflow") as connection:
            seed_mlflow(connection, int(experiment), runs, metrics=COLUMNS - OTHER_COLUMNS)
            connection.execute("VACUUM ANALYZE")
        own = [f"http://{ADDRESS}:{ours.port}", token_of(folder, team), str(PROJECT_DIR / "clients/python")]
        python = str(Path(mlflow).with_name("python"))
        other = [f"http://{ADDRESS}:{theirs.port}", experiment, str(runs)]
        took: dict[str, list[float]] = {"BenchHub": [], "MLflow": []}
        for _ in range(times):
            took["BenchHub"].append(_asked("BenchHub", [sys.executable, "-c", _OURS, *own], runs))
            took["MLflow"].append(_asked("MLflow", [python, "-c", _THEIRS, *other], runs))
    ratio = median(took["MLflow"]) / median(took["BenchHub"])
    print(f"MLflow takes {ratio:.1f} times as long, by the medians of {times}")
    return ratio


def _asked(name: str, argv: list[str], runs: int) -> float:
    """Seconds until the client has its frame. SystemExit when it has not all of the runs."""
    began_s = time.perf_counter()
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{name}'s client failed:\n{done.stderr[-2000:]}")
    took_s, rows, columns = done.stdout.split()[-3:]
    if int(rows) != runs:
        raise SystemExit(f"{name}'s client has {rows} runs, not {runs}.")
    whole_s = time.perf_counter() - began_s
    print(f"{name}: {rows} runs, {columns} columns in {float(took_s):.2f} s ({whole_s:.1f} s with the start of Python)")
    return float(took_s)
