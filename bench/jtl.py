"""Measures the reader of JMeter's result files on a large one: time against bare polars, memory, exactness.

It writes a file of made-up results with a fixed seed into a temporary directory and removes it. The time to beat is
that of polars alone counting the requests of each millisecond, in turns with the reader in the same process; the median
of the rounds counts. Then both once more, each in a process of its own from its start to its end. Prints Markdown; the
exit status is 1 when the reader takes more than three times the time, grows by more than 400 MB, tells no progress, or
gives another percentile, sum or count than the plain counts do.
"""

from __future__ import annotations

import argparse
import math
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import BinaryIO

import numpy as np
import polars as pl

from agents.drivers.jmeter.jtl.files import read_jtl_file
from agents.results.report import LoadReport
from agents.results.request_figures import RequestFigures
from bench.memory import memory_bytes, reset_peak_bytes

SEED = 20_261_120
ROUNDS = 5
MAX_RATIO = 3.0
MAX_GROWN_BYTES = 400_000_000
BLOCK_ROWS = 500_000
T0_MS = 1_795_165_521_000

_BARE = "import sys, polars as pl; pl.scan_csv(sys.argv[1]).group_by('elapsed').len().collect()"
_READ = (
    "import sys, pathlib; from agents.drivers.jmeter.jtl.files import read_jtl_file; "
    "read_jtl_file(pathlib.Path(sys.argv[1]))"
)

_LABELS = ["create", "read", "update", "delete", "list", "search"]
_CODES = [("201", "Created"), ("200", "OK"), ("200", "OK"), ("204", "No Content"), ("200", "OK"), ("200", "OK")]


@dataclass(frozen=True)
class Times:
    """Wall and CPU seconds of bare polars and of the reader."""

    bare_s: float
    bare_cpu_s: float
    read_s: float
    read_cpu_s: float

    @property
    def row(self) -> str:
        bare, read = f"{self.bare_s:.2f} ({self.bare_cpu_s:.2f})", f"{self.read_s:.2f} ({self.read_cpu_s:.2f})"
        return f"{bare} | {read} | {self.read_s / self.bare_s:.2f} ({self.read_cpu_s / self.bare_cpu_s:.2f})"


@dataclass(frozen=True)
class Found:
    """One measurement: both in one process and in fresh processes. `wrong` says in words what did not hold."""

    rows: int
    size_bytes: int
    warm: Times
    fresh: Times
    grown_bytes: int
    steps: int
    wrong: tuple[str, ...]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000, help="how many results the file has")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="benchhub-jtl-") as folder:
        path = Path(folder) / "results.jtl"
        with path.open("wb") as file:
            write_results(file, given.rows)
        found = measure(path, given.rows)
    print("\n".join(table(found)))
    if found.wrong:
        raise SystemExit(1)


def write_results(file: BinaryIO, rows: int, seed: int = SEED) -> None:
    """Results of 100 users as JMeter saves them by default; one request in a thousand fails."""
    random = np.random.default_rng(seed)
    labels, codes = pl.Series(_LABELS), pl.Series([code for code, _ in _CODES])
    messages = pl.Series([message for _, message in _CODES])
    for first in range(0, rows, BLOCK_ROWS):
        count = min(BLOCK_ROWS, rows - first)
        elapsed = random.lognormal(2.5, 0.8, count).astype(np.int64)
        kind = random.integers(0, len(_LABELS), count)
        failed = random.random(count) < 0.001
        users = pl.Series(random.integers(1, 101, count)).cast(pl.String)
        frame = pl.DataFrame(
            {
                "timeStamp": T0_MS + np.arange(first, first + count) // 20 - elapsed,
                "elapsed": elapsed,
                "label": labels[kind],
                "responseCode": codes[kind].zip_with(pl.Series(~failed), pl.Series(["503"])),
                "responseMessage": messages[kind].zip_with(pl.Series(~failed), pl.Series(["Service Unavailable"])),
                "threadName": "Users 1-" + users,
                "dataType": pl.repeat("text", count, eager=True),
                "success": pl.Series(~failed),
                "failureMessage": pl.repeat(None, count, dtype=pl.String, eager=True),
                "bytes": random.integers(150, 2000, count),
                "sentBytes": random.integers(100, 200, count),
                "grpThreads": pl.repeat(100, count, eager=True),
                "allThreads": pl.repeat(100, count, eager=True),
                "URL": pl.repeat("http://sut:8080/people/item", count, eager=True),
                "Latency": elapsed,
                "IdleTime": pl.repeat(0, count, eager=True),
                "Connect": (random.random(count) < 0.01) * random.integers(1, 9, count),
            }
        )
        frame.write_csv(file, include_header=first == 0)


class _Watch:
    """A stop watch of wall and CPU time."""

    def __init__(self) -> None:
        self._wall_s, self._cpu_s = time.perf_counter(), time.process_time()

    def seconds(self) -> tuple[float, float]:
        return time.perf_counter() - self._wall_s, time.process_time() - self._cpu_s


def measure(path: Path, rows: int) -> Found:
    bare, read, grown_bytes = [], [], 0
    steps: list[int] = []
    for _ in range(ROUNDS):
        start_bytes = reset_peak_bytes()
        steps.clear()
        watch = _Watch()
        report = read_jtl_file(path, lambda done, _size: steps.append(done))
        read.append(watch.seconds())
        grown_bytes = max(grown_bytes, memory_bytes("VmHWM") - start_bytes)
        watch = _Watch()
        counts = pl.scan_csv(path).group_by("elapsed").len().collect()
        bare.append(watch.seconds())
    warm = Times(*_medians(bare), *_medians(read))
    fresh = in_fresh_processes(path)
    wrong = _wrong(report, path, counts, rows)
    for where, times in (("", warm), (" in a fresh process", fresh)):
        if times.read_s > MAX_RATIO * times.bare_s:
            wrong.append(f"it takes more than {MAX_RATIO:g} times as long as bare polars{where}")
    if grown_bytes > MAX_GROWN_BYTES:
        wrong.append(f"it grows by more than {MAX_GROWN_BYTES / 1e6:.0f} MB")
    if not steps or steps[-1] != path.stat().st_size:
        wrong.append("it does not tell its progress up to the end")
    size_bytes = path.stat().st_size
    return Found(rows, size_bytes, warm, fresh, grown_bytes, len(steps), tuple(wrong))


def in_fresh_processes(path: Path) -> Times:
    """The medians, imports included."""
    bare, read = [], []
    for _ in range(ROUNDS):
        bare.append(_process_s(_BARE, path))
        read.append(_process_s(_READ, path))
    return Times(*_medians(bare), *_medians(read))


def _process_s(code: str, path: Path) -> tuple[float, float]:
    before, start_s = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, "-c", code, str(path)], check=True)
    wall_s, after = time.perf_counter() - start_s, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _medians(rounds: list[tuple[float, float]]) -> tuple[float, float]:
    return median(wall_s for wall_s, _ in rounds), median(cpu_s for _, cpu_s in rounds)


def _wrong(report: LoadReport, path: Path, counts: pl.DataFrame, rows: int) -> list[str]:
    """What of the report differs from the plain counts."""
    wrong = []
    ordered = counts.sort("elapsed")
    values, upto = ordered["elapsed"].to_list(), ordered["len"].cum_sum().to_list()
    if report.latency is None or not isinstance(report.more, RequestFigures):
        return ["the report has no latency, or no figures of the requests"]
    for name, value in report.latency.percentiles_ms.items():
        rank = math.ceil(round(float(name) * rows / 100, 6))
        if values[int(np.searchsorted(upto, rank))] != value:
            wrong.append(f"p{name} is not {value}")
    sums = pl.scan_csv(path).select(
        pl.len(),
        pl.col("bytes").sum(),
        (~pl.col("success")).sum().alias("failed"),
        pl.col("timeStamp").min().alias("start"),
        (pl.col("timeStamp") + pl.col("elapsed")).max().alias("end"),
    )
    plain = sums.collect().row(0)
    found = (report.requests, report.bytes_read, report.more.errors, report.more.started_ms, report.more.ended_ms)
    if plain != found:
        wrong.append(f"counts, bytes, failures, start and end are {found}, not {plain}")
    return wrong


def table(found: Found) -> list[str]:
    """The Markdown."""
    size, grown = f"{found.rows:,} | {found.size_bytes / 1e6:,.0f}", f"{found.grown_bytes / 1e6:.0f}"
    return [
        "| results | file, MB | where | bare polars, s (CPU) | reader, s (CPU) | ratio (CPU) | memory grown by, MB |",
        "| ---: | ---: | --- | ---: | ---: | ---: | ---: |",
        f"| {size} | the same process | {found.warm.row} | {grown} |",
        f"| {size} | a fresh process each | {found.fresh.row} | |",
        "",
        f"Limits: ratio {MAX_RATIO:g}, memory {MAX_GROWN_BYTES / 1e6:.0f} MB. Progress was told {found.steps} times.",
        *(f"Broken: {wrong}." for wrong in found.wrong),
    ]


if __name__ == "__main__":
    main()
