"""Measures how many runs retention moves to the trash in a minute, and how many are removed from there for good.

Works in a database `retention` of its own on the embedded PostgreSQL of BENCHHUB_DATA_DIR (give it a scratch
directory), which is made anew. Its runs have files and trends as executed ones do, and no events and samples: those
stay until their month is cleared. The runs that are due are of all series in turns, so that a batch meets as many
series as it can, whose trends are made again. Prints Markdown.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from datetime import timedelta

from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db.models import Max

import bench.django_project  # noqa: F401 - before the models
from bench.growth import anew, execute
from experiments.judging.alerts.trends import rebuild
from experiments.keeping.demo.seeding import seed_runs
from experiments.keeping.retention.policy import apply_retention
from experiments.keeping.retention.removal import remove_expired
from experiments.keeping.retention.trash import KEPT_DAYS
from experiments.models import Member, Role, Run, Series, Team
from experiments.registry.runs.series import extend_series

DAYS = 30
FILES = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--series", type=int, default=200)
    parser.add_argument("--due", type=int, default=10, help="runs of each series that are past retention")
    given = parser.parse_args()
    anew("retention")
    call_command("migrate", verbosity=0)
    _fill(given.runs, given.series, given.due)
    print("| | runs | s | runs a minute |\n| --- | ---: | ---: | ---: |")
    _row("moved to the trash", apply_retention)
    execute("UPDATE experiments_run SET trashed_at = trashed_at - %s", timedelta(days=KEPT_DAYS, hours=1))
    _row("removed for good", remove_expired)


def _fill(runs: int, series: int, due: int) -> None:
    print(f"# {runs} runs in {series} series, of each {due} due", file=sys.stderr)
    user = get_user_model().objects.create_user("bench", email="bench@localhost.invalid")
    team = Team.objects.create(slug="bench", name="Bench", retention_days=DAYS)
    Member.objects.create(team=team, user=user, role=Role.ADMIN)
    seed_runs(team, runs)
    # Neither tags nor experiments keep one, and all are young but the first of each series.
    execute(
        "UPDATE experiments_run SET tags = '[]', experiment_id = NULL, variant_id = NULL, is_demo = false, "
        "fingerprint = encode(sha256((id %% %s)::text::bytea), 'hex'), "
        "finished_at = now() - interval '1 day' * (%s + 1) + interval '1 s' * number "
        "+ CASE WHEN number > %s THEN interval '2 days' ELSE interval '0' END",
        *(series, DAYS, series * due),
    )
    execute(
        "INSERT INTO experiments_artifact (run_id, name, media_type, sha256, content, created_at) SELECT id, "
        "'file-' || file, 'text/plain', '', decode(repeat('00', 2000), 'hex'), now() "
        "FROM experiments_run CROSS JOIN generate_series(1, %s) AS file",
        FILES,
    )
    Series.objects.all().delete()
    newest = Run.objects.counted().values("fingerprint").annotate(last=Max("pk")).values("last")
    for run in Run.objects.filter(pk__in=newest):
        about = {"application": str(run.application), "workload": str(run.workload)}
        rebuild(extend_series(run, **about, tool="wrk (made up)", latency_basis="service_time"))
    execute("VACUUM ANALYZE")


def _row(what: str, act: Callable[[], int]) -> None:
    began_s = time.perf_counter()
    runs = act()
    took_s = time.perf_counter() - began_s
    print(f"| {what} | {runs:,} | {took_s:.1f} | {60 * runs / took_s:,.0f} |", flush=True)


if __name__ == "__main__":
    main()
