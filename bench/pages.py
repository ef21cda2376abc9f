"""Measures pages and API at 1,000, 10,000 and 100,000 runs, or as many as asked: SQL queries per page, server time.

Runs in the embedded PostgreSQL of BENCHHUB_DATA_DIR (give it a scratch directory) or in that of DATABASE_URL, and keeps
its teams `bench-1000` ... there, so that a second run does not seed again. Prints Markdown.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
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
from experiments.judging.alerts.trends import rebuild
from experiments.keeping.demo.seeding import seed_runs
from experiments.models import Member, Recipe, Role, Run, Series, Team
from experiments.registry.teams.tokens import issue
from experiments.telling.run_list.listing import cursor_after

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--runs", type=int, nargs="+", default=SIZES, help="sizes of the teams; their requests take turns"
    )
    parser.add_argument("--requests", type=int, default=30, help="timed requests per page and size")
    parser.add_argument("--only", default="", help="only pages with this text in their names")
    parser.add_argument("--explain", type=float, metavar="MS", help="EXPLAIN queries that take longer than this")
    given = parser.parse_args()
    call_command("migrate", verbosity=0)
    user, _ = get_user_model().objects.get_or_create(username="bench", defaults={"email": "bench@localhost.invalid"})
    teams = {size: _team(size, user) for size in given.runs}
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    client = Client(headers={"host": "localhost"})
    client.force_login(user)
    pages = {
        size: {page.name: page for page in _pages(team, user) if given.only.lower() in page.name.lower()}
        for size, team in teams.items()
    }
    names = list(pages[given.runs[0]])
    found = {name: _time(client, {size: pages[size][name] for size in teams}, given.requests) for name in names}
    print("\n".join(table(found)))
    if given.explain is not None:
        for size in teams:
            for name in names:
                _explain(client, pages[size][name], given.explain)


def table(found: Mapping[str, Mapping[int, Measured]]) -> list[str]:
    """The Markdown: one row per page; queries, p50 / p95 for each size, p95 of the largest to that of 10,000 runs."""
    sizes = list(next(iter(found.values())))
    base, largest = (10_000 if 10_000 in sizes else sizes[0]), sizes[-1]
    heads = ["page", "SQL queries", *(f"{size:,} runs, p50 / p95 ms" for size in sizes)]
    ratio = largest != base
    lines = [_row([*heads, f"p95, {largest:,} : {base:,} runs"] if ratio else heads)]
    lines.append("| --- | ---: |" + " ---: |" * (len(sizes) + ratio))
    for name, of_size in found.items():
        counts = sorted({measured.queries for measured in of_size.values()})
        queries = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
        cells = [name, queries, *(f"{one.p50_ms:.0f} / {one.p95_ms:.0f}" for one in of_size.values())]
        lines.append(_row([*cells, f"{of_size[largest].p95_ms / of_size[base].p95_ms:.2f}"] if ratio else cells))
    return lines


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _team(size: int, user: Any) -> Team:
    team, created = Team.objects.get_or_create(
        slug=f"bench-{size}", defaults={"name": f"Bench {size}", "is_demo": True}
    )
    Member.objects.get_or_create(team=team, user=user, defaults={"role": Role.ADMIN})
    if created or Run.objects.for_team(team).count() < size:
        print(f"seeding {size} runs", file=sys.stderr)
        seed_runs(team, size)
        rebuild(_newest_series(team))  # its change points, which runs of today find one by one
    return team


def _newest_series(team: Team) -> Series:
    """The one that Trends shows first."""
    newest: Series = Series.objects.for_team(team).order_by("-last_run_id")[0]
    return newest


def _pages(team: Team, user: Any) -> list[Page]:
    runs, newest = f"/t/{team.slug}/runs/", Run.objects.for_team(team).order_by("-number")
    last = newest[0]
    recipe = Recipe.objects.for_team(team).order_by("name")[0].name
    cursors = {sort: _deep_cursor(team, sort) for sort in ("-number", "-throughput_rps")}
    compared = [str(run.number) for run in newest.filter(fingerprint=last.fingerprint)[:10]]
    experiment = newest.exclude(experiment=None)[0].experiment_id
    series = _newest_series(team)
    filters: dict[str, str] = {
        "state": "finished",
        "outcome": "failed",
        "validity": "invalid",
        "recipe": recipe,
        "workload": str(last.workload.name),
        "application": str(last.application.name),
        "sut": str(last.sut.name),
        "driver": str(last.drivers.names[0]),
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
        ("Search", f"/t/{team.slug}/find/", {"q": "tomcat"}),
        ("Trends", f"/t/{team.slug}/trends/", {}),
        ("Trends, points of a chart", f"/t/{team.slug}/trends/points", {"series": str(series.pk)}),
        ("Compare, 2 runs", f"/t/{team.slug}/compare/", {"runs": ",".join(compared[:2])}),
        ("Compare, 10 runs", f"/t/{team.slug}/compare/", {"runs": ",".join(compared)}),
        ("Compare, overlay of 10 runs", f"/t/{team.slug}/compare/overlays", {"runs": ",".join(compared)}),
        ("Experiments", f"/t/{team.slug}/experiments/", {}),
        ("Experiment", f"/t/{team.slug}/experiments/{experiment}/", {}),
        ("Experiment, its report", f"/t/{team.slug}/experiments/{experiment}/report/", {}),
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
    """The cursor nine tenths down the list."""
    runs = Run.objects.for_team(team).exclude(**{f"{sort.lstrip('-')}": None}).order_by(sort)
    return cursor_after(runs[int(runs.count() * 0.9)], sort)


def _time(client: Client, pages: Mapping[int, Page], requests: int) -> dict[int, Measured]:
    """The same page of every size; the requests take turns, so that whatever else the machine does meets them alike."""
    queries = {}
    for size, page in pages.items():
        for _ in range(WARM_UPS):
            _get(client, page)
        with CaptureQueriesContext(connection) as captured:
            _get(client, page)
        queries[size] = len(captured.captured_queries)
    times_ms: dict[int, list[float]] = {size: [] for size in pages}
    for _ in range(requests):
        for size, page in pages.items():
            times_ms[size].append(_get(client, page))
    return {
        size: Measured(queries[size], *(float(ms) for ms in np.percentile(times_ms[size], [50, 95]))) for size in pages
    }


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
