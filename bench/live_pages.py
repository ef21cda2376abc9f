"""Measures 500 pages that follow one live run: from an event's being stored until every page has it.

A web process of BenchHub's own on loopback, streams of server-sent events as browsers open them, and events written as
a run writes them: readings of two hosts each second, some log lines. Uses the database of BENCHHUB_DATA_DIR (give it a
scratch directory) or DATABASE_URL, keeps its team `bench-live` there. Prints Markdown; the exit status is 1 when an
event was late by 2 s or more, or missing on a page.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import re
import time
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import numpy as np
from asgiref.sync import sync_to_async

from agents.events import AnyEvent, Logged, Samples
from bench.website import Website, cpu_s, rss_bytes, session_cookie, signed_in, team_with_runs, website, write_events
from experiments.models import Run

LIMIT_S = 2.0
OPENED_LIMIT_S = 120.0
AFTERWARDS_S = 10.0
TICK_S = 0.5
STAMP = re.compile(rb"stamp (\d+) at ([0-9.]+)")
CHANNELS = {f"cpu.{number}.busy_ratio": ("ratio", 0.5) for number in range(16)}


@dataclass
class Page:
    """One open page: when it was answered, and how late each stamped event came."""

    opened_s: float | None = None
    late_s: dict[int, float] = field(default_factory=dict)
    received_bytes: int = 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=500)
    parser.add_argument("--seconds", type=int, default=30, help="how long events are written")
    given = parser.parse_args()
    team, user = team_with_runs("bench-live", 20)
    run = Run.objects.for_team(team).order_by("-number")[0]
    Run.objects.filter(pk=run.pk).update(state=Run.State.MEASURING, outcome="", finished_at=None)
    run.refresh_from_db()
    cookie = session_cookie(signed_in(user))
    try:
        with website() as site:
            path = f"/t/{team.slug}/runs/{run.number}/events?after={run.last_seq}"
            raise SystemExit(asyncio.run(_measure(site, path, cookie, run, given.pages, given.seconds)))
    finally:
        Run.objects.filter(pk=run.pk).update(state=Run.State.FINISHED, outcome=Run.Outcome.SUCCEEDED)


async def _measure(site: Website, path: str, cookie: str, run: Run, count: int, seconds: int) -> int:
    idle_bytes = rss_bytes(site.pid)
    pages = [Page() for _ in range(count)]
    started_s = time.perf_counter()
    readers = [asyncio.create_task(_follow(site, path, cookie, page)) for page in pages]
    try:
        async with asyncio.timeout(OPENED_LIMIT_S):
            while any(page.opened_s is None for page in pages):
                _raise_first(readers)
                await asyncio.sleep(0.05)
        opened_s = time.perf_counter() - started_s
        cpu_before_s, began_s = cpu_s(site.pid), time.perf_counter()
        written = await _write(run, seconds)
        end_s = time.perf_counter() + AFTERWARDS_S
        while any(len(page.late_s) < written for page in pages) and time.perf_counter() < end_s:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        cpu_ratio = (cpu_s(site.pid) - cpu_before_s) / (time.perf_counter() - began_s)
        busy_bytes = rss_bytes(site.pid)
    finally:
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)
    # An event is there when the last page has it.
    last_s = [max(page.late_s.get(n, np.inf) for page in pages) for n in range(written)]
    each_s = [late for page in pages for late in page.late_s.values()]
    missing = written * count - len(each_s)
    p50, p95 = np.percentile(each_s, [50, 95])
    heads = ["pages", "opened in, s", "events", "p50 / p95 / max until a page has it, ms", "missing"]
    print(f"| {' | '.join([*heads, 'web process, MB before / with pages', 'its CPU'])} |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    late = f"{p50 * 1000:.0f} / {p95 * 1000:.0f} / {max(each_s) * 1000:.0f}"
    memory = f"{idle_bytes / 1e6:.0f} / {busy_bytes / 1e6:.0f}"
    print(f"| {count} | {opened_s:.1f} | {written} | {late} | {missing} | {memory} | {cpu_ratio:.0%} of one CPU |")
    return int(missing > 0 or max(last_s) >= LIMIT_S)


def _raise_first(readers: list[asyncio.Task[None]]) -> None:
    for reader in readers:
        if reader.done():
            reader.result()
            raise SystemExit("A stream ended at once.")


async def _follow(site: Website, path: str, cookie: str, page: Page) -> None:
    """One browser's stream; the stamps in it say when their events were stored."""
    address = urlsplit(site.url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    try:
        head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nCookie: {cookie}\r\nAccept: text/event-stream\r\n\r\n"
        writer.write(head.encode())
        status = await reader.readline()
        if b" 200 " not in status:
            raise SystemExit(f"{path} answered {status.decode().strip()}")
        page.opened_s = time.perf_counter()
        async for line in reader:
            page.received_bytes += len(line)
            for number, at_s in STAMP.findall(line):
                page.late_s[int(number)] = time.time() - float(at_s)
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def _write(run: Run, seconds: int) -> int:
    """Events at the pace of a run; returns how many were stamped."""
    ticks = int(seconds / TICK_S)
    for tick in range(ticks):
        began_s = time.perf_counter()
        await sync_to_async(_store, thread_sensitive=False)(run, tick)
        await asyncio.sleep(max(0.0, TICK_S - (time.perf_counter() - began_s)))
    return ticks


def _store(run: Run, tick: int) -> None:
    readings: list[AnyEvent] = [Samples(role, time.time(), CHANNELS) for role in ("sut", "driver")]
    stamped = Logged("driver", (f"stamp {tick} at {time.time():.3f}",))
    write_events(run, iter([*readings, stamped]))


if __name__ == "__main__":
    main()
