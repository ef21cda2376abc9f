"""Measures pages and API at 1,000, 10,000 and 100,000 runs: SQL queries per page, and server time.

Runs in the embedded PostgreSQL of BENCHHUB_DATA_DIR (give it a scratch directory) or in that of DATABASE_URL, and keeps
its teams `bench-1000` ... there, so that a second run does not seed again. Prints Markdown.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import numpy as np
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

import bench.django_project  # noqa: F401 - before the models
from experiments.models import Member, Recipe, Role, Run, Series, Team
from experiments.run_list import MAX_LIMIT, RunFilter, runs_page
from experiments.seeding import seed_runs
from experiments.tokens import issue

SIZES = (1_000, 10_000, 100_000)
WARM_UPS = 2


@dataclass(frozen=True)
class Page:
    """What is asked for: a name for the table, the address, and the headers."""

    name: str
    url: str
    headers: Mapping[str, str]


@dataclass(frozen=True)
class Measured:
    queries: int
    p50_ms: float
    p95_ms: float
    slowest_sql_ms: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=30, help="timed requests per page and size")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--explain", type=float, metavar="MS", help="EXPLAIN queries that take longer than this")
    given = parser.parse_args()
    call_command("migrate", verbosity=0)
    user, _ = get_user_model().objects.get_or_create(username="bench", defaults={"email": "bench@localhost.invalid"})
    found = {size: _measure(_team(size, user), user, given.requests, given.explain) for size in given.sizes}
    print("\n".join(table(found)))


def table(found: Mapping[int, Mapping[str, Measured]]) -> list[str]:
    """The Markdown: one row per page; queries, then p50 / p95 for each size."""
    sizes = list(found)
    lines = ["| page | SQL queries | " + " | ".join(f"{size:,} runs, p50 / p95 ms" for size in sizes) + " |"]
    lines.append("| --- | ---: |" + " ---: |" * len(sizes))
    for name in found[sizes[0]]:
        row = [found[size][name] for size in sizes]
        counts = sorted({measured.queries for measured in row})
        queries = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
        times = " | ".join(f"{measured.p50_ms:.0f} / {measured.p95_ms:.0f}" for measured in row)
        lines.append(f"| {name} | {queries} | {times} |")
    return lines


def _team(size: int, user: Any) -> Team:
    team, created = Team.objects.get_or_create(
        slug=f"bench-{size}", defaults={"name": f"Bench {size}", "is_demo": True}
    )
    Member.objects.get_or_create(team=team, user=user, defaults={"role": Role.ADMIN})
    if created or Run.objects.for_team(team).count() < size:
        print(f"seeding {size} runs", file=sys.stderr)
        seed_runs(team, size)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    return team


def _measure(team: Team, user: Any, requests: int, explain_ms: float | None) -> dict[str, Measured]:
    client = Client(headers={"host": "localhost"})
    client.force_login(user)
    found = {}
    for page in _pages(team, user):
        found[page.name] = _time(client, page, requests)
        if explain_ms is not None and found[page.name].slowest_sql_ms > explain_ms:
            _explain(client, page, explain_ms)
    return found


def _pages(team: Team, user: Any) -> list[Page]:
    runs, newest = f"/t/{team.slug}/runs/", Run.objects.for_team(team).order_by("-number")
    last = newest[0]
    recipe = Recipe.objects.for_team(team).order_by("name")[0].name
    cursors = {sort: _deep_cursor(team, sort) for sort in ("-number", "-throughput_rps")}
    compared = [str(run.number) for run in newest.filter(fingerprint=last.fingerprint)[:10]]
    experiment = newest.exclude(experiment=None)[0].experiment_id
    series = Series.objects.for_team(team).order_by("-last_run_id")[0]
    filters: dict[str, str] = {
        "state": "finished",
        "outcome": "failed",
        "validity": "invalid",
        "recipe": recipe,
        "workload": str(last.workload.name),
        "application": str(last.application.name),
        "sut": str(last.sut.name),
        "driver": str(last.driver.name),
        "tag": "release",
        "label": f"commit={last.labels['commit']}",
        "experiment": str(experiment),
        "since": "2020-01-01",
        "archived": "1",
    }
    boxes = {
        "a number": f"#{last.number}",
        "a word": "helloworld",
        "a word that nothing has": "nowhere",
        "branch:main": "branch:main",
    }
    asked: list[tuple[str, str, Mapping[str, str]]] = [("Runs", runs, {})]
    asked += [(f"Runs, {name} filter", runs, {name: value}) for name, value in filters.items()]
    asked += [(f"Runs, query box: {name}", runs, {"query": value}) for name, value in boxes.items()]
    asked += [
        (f"Runs, sorted by {sort}", runs, {"sort": sort})
        for sort in ("-throughput_rps", "latency_p99_ms", "-finished_at")
    ]
    asked += [
        (f"Runs, deep cursor, {sort}", runs, {"sort": sort, "cursor": cursor}) for sort, cursor in cursors.items()
    ]
    asked += [
        ("Overview", f"/t/{team.slug}/", {}),
        ("Trends", f"/t/{team.slug}/trends/", {}),
        ("Trends, points of a chart", f"/t/{team.slug}/trends/points", {"series": str(series.pk)}),
        ("Compare, 2 runs", f"/t/{team.slug}/compare/", {"runs": ",".join(compared[:2])}),
        ("Compare, 10 runs", f"/t/{team.slug}/compare/", {"runs": ",".join(compared)}),
        ("Compare, overlay of 10 runs", f"/t/{team.slug}/compare/overlays", {"runs": ",".join(compared)}),
        ("Experiments", f"/t/{team.slug}/experiments/", {}),
    ]
    pages = [Page(name, _url(path, query), {}) for name, path, query in asked]
    _, token = issue(Member.objects.get(team=team, user=user), name="bench", scopes=["read"])
    api = {"Authorization": f"Bearer {token}"}
    pages.append(Page("API, list of runs", "/api/v1/runs", api))
    pages.append(Page("API, one commit's runs", _url("/api/v1/runs", {"label": filters["label"]}), api))
    return pages


def _url(path: str, query: Mapping[str, str]) -> str:
    return f"{path}?{urlencode(query)}" if query else path


def _deep_cursor(team: Team, sort: str) -> str:
    """The cursor nine tenths down the list, got as anybody gets it: page after page."""
    cursor = ""
    for _ in range(int(Run.objects.for_team(team).count() * 0.9 / MAX_LIMIT)):
        cursor = runs_page(team, RunFilter(), sort=sort, cursor=cursor, limit=MAX_LIMIT).next_cursor
    return cursor


def _time(client: Client, page: Page, requests: int) -> Measured:
    for _ in range(WARM_UPS):
        _get(client, page)
    with CaptureQueriesContext(connection) as captured:
        _get(client, page)
    queries = list(captured.captured_queries)  # now: the next request forgets them
    slowest_s = max(float(query["time"]) for query in queries)
    times_ms = [_get(client, page) for _ in range(requests)]
    p50_ms, p95_ms = np.percentile(times_ms, [50, 95])
    return Measured(len(queries), float(p50_ms), float(p95_ms), slowest_s * 1000)


def _get(client: Client, page: Page) -> float:
    """Ask for the page; returns the milliseconds that it took."""
    started_s = time.perf_counter()
    answer = client.get(page.url, headers=dict(page.headers))
    took_ms = (time.perf_counter() - started_s) * 1000
    if answer.status_code != 200:
        raise SystemExit(f"{page.url} answered {answer.status_code}: {answer.content[:300]!r}")
    return took_ms


def _explain(client: Client, page: Page, limit_ms: float) -> None:
    with CaptureQueriesContext(connection) as captured:
        _get(client, page)
    for query in captured.captured_queries:
        if float(query["time"]) * 1000 > limit_ms:
            print(f"\n{page.name}: {float(query['time']) * 1000:.0f} ms\n{query['sql']}", file=sys.stderr)
            with connection.cursor() as cursor:
                cursor.execute("EXPLAIN (ANALYZE, BUFFERS) " + query["sql"].replace("%", "%%"))
                print("\n".join(row[0] for row in cursor.fetchall()), file=sys.stderr)


if __name__ == "__main__":
    main()
