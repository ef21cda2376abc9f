"""Measures whole data: 100,000 runs with 70 columns as Parquet into a frame, and the memory that it takes.

Runs in the embedded PostgreSQL of BENCHHUB_DATA_DIR (give it a scratch directory) or in that of DATABASE_URL, and keeps
its team `frames-100000` there. Exit status 1 when the best of `--times` takes longer than 5 s.

With `--mlflow PROGRAM` both servers are started as their users start them, on one PostgreSQL of a scratch directory,
and asked by their own clients: `Hub.runs` into a frame of polars, `mlflow.search_runs` into its own of pandas. Exit
status 1 when MLflow does not take ten times as long.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time

import polars as pl
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import connection
from django.test import Client

import bench.django_project  # noqa: F401 - before the models
from bench.frames_beside_mlflow import COLUMNS, MORE_FIGURES, compare
from experiments.keeping.demo.seeding import seed_runs
from experiments.models import Member, Role, Run, Team
from experiments.registry.teams.tokens import issue

AIM_S = 5.0
TIMES_MLFLOW = 10.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--mlflow", metavar="PROGRAM", help="MLflow's `mlflow`, in a virtual environment of its own")
    given = parser.parse_args()
    if given.mlflow:
        sys.exit(compare(given.mlflow, given.runs, given.times) < TIMES_MLFLOW)
    call_command("migrate", verbosity=0)
    member = _member(given.runs)
    _, token = issue(member, name="frames", scopes=["read"])
    client = Client(headers={"host": "localhost", "authorization": f"Bearer {token}"})
    before_mb = _memory_mb()
    taken = [_read(client) for _ in range(given.times)]
    grown_mb = _memory_mb() - before_mb
    print(f"best of {given.times}: {min(taken):.2f} s; memory grew by {grown_mb:.0f} MB, all frames included")
    sys.exit(min(taken) > AIM_S)


def _read(client: Client) -> float:
    began_s = time.perf_counter()
    answer = client.get("/api/v1/runs.parquet")
    parts = list(answer.streaming_content)  # type: ignore[attr-defined]
    made_s = time.perf_counter() - began_s
    frame = pl.read_parquet(b"".join(parts))
    whole_s = time.perf_counter() - began_s
    size_mb = sum(map(len, parts)) / 1e6
    made = f"{frame.height} runs, {frame.width} columns, {size_mb:.1f} MB"
    print(f"{made}: {whole_s:.2f} s, of which {made_s:.2f} s the file")
    return whole_s


def _member(runs: int) -> Member:
    """The team with so many runs, made on the first call; each run has as many figures as the columns need."""
    slug = f"frames-{runs}"
    found = Member.objects.filter(team__slug=slug).first()
    if found is not None:
        return found
    user, _ = get_user_model().objects.get_or_create(username="bench", defaults={"email": "bench@localhost.invalid"})
    team = Team.objects.create(slug=slug, name=slug, is_demo=True)
    member = Member.objects.create(team=team, user=user, role=Role.ADMIN)
    seed_runs(team, runs)
    with connection.cursor() as cursor:
        cursor.execute(MORE_FIGURES, [COLUMNS - 34, team.pk])
        cursor.execute("VACUUM ANALYZE")
    assert Run.objects.for_team(team).count() == runs  # noqa: S101
    return member


def _memory_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
