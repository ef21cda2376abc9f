"""What must hold of the runs whatever was cut and killed, and what of the times. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

CLAIM_P99_MS = 1000.0
PAGES_RATIO = 1.5


@dataclass(frozen=True)
class Ended:
    """A run as its row tells it at the end."""

    number: int
    state: str
    outcome: str
    restore: str
    attempts: int
    failure: str


@dataclass
class Measured:
    """All that a measurement saw. Times of pages by name, in milliseconds."""

    hosts: int
    sites: int
    workers: int
    live: int = 0
    queued: int = 0
    load_average: float = 0.0
    ramp_s: float = 0.0
    cut_s: float = 0.0
    killed: int = 0
    ended: Sequence[Ended] = ()
    told: Sequence[Mapping[str, Any]] = ()
    hosts_not_free: int = 0
    claims_ms: Sequence[float] = ()
    statements_per_s: float | None = None
    connections: int = 0
    bytes_per_run: float = 0.0
    most_of_one_worker: int = 0
    worker_cpu_ratio: float = 0.0
    quiet_ms: Mapping[str, Sequence[float]] = field(default_factory=dict)
    live_ms: Mapping[str, Sequence[float]] = field(default_factory=dict)

    def starts(self) -> Counter[str]:
        """How often each job was started, by host and job."""
        found: Counter[str] = Counter()
        for site in self.told:
            found.update(site["starts"])
        return found

    def lost(self) -> list[str]:
        """Runs that did not come to the end that they should."""
        return [
            f"run #{run.number} is {run.state} {run.outcome} {run.restore}: {run.failure}"
            for run in self.ended
            if (run.state, run.outcome, run.restore) != ("finished", "succeeded", "verified")
        ]

    def doubled(self) -> list[str]:
        """Jobs that were started more than once: under one cookie, or under another one in the same place."""
        starts = self.starts()
        places = Counter(job.rpartition(" ")[0] for job in starts.elements())
        return [f"{place} was started {count} times" for place, count in places.items() if count > 1]

    def adopted(self) -> int:
        return sum(run.attempts > 1 for run in self.ended)

    def claim_p99_ms(self) -> float:
        return float(np.percentile(self.claims_ms, 99)) if self.claims_ms else float("inf")

    def page_ratios(self) -> dict[str, float]:
        """Median of each page with live runs, as a multiple of the quiet one."""
        return {
            name: float(np.median(self.live_ms[name]) / np.median(quiet))
            for name, quiet in self.quiet_ms.items()
            if self.live_ms.get(name)
        }

    def unknown(self) -> dict[str, int]:
        """Commands that no simulated host knew."""
        return {text: count for site in self.told for text, count in site["unknown"].items()}

    def missed(self) -> list[str]:
        """The aims that were not reached, one sentence each."""
        problems = [*self.lost(), *self.doubled()]
        if self.hosts_not_free:
            problems.append(f"{self.hosts_not_free} hosts are not free and ready")
        if fired := sum(site["fired"] for site in self.told):
            problems.append(f"{fired} hosts put themselves back")
        if living := sum(site["living_jobs"] for site in self.told):
            problems.append(f"{living} jobs were left on hosts")
        if left := sum(site["files_left"] for site in self.told):
            problems.append(f"{left} files of runs were left on hosts")
        problems += [f"not simulated, {count} times: {text}" for text, count in self.unknown().items()]
        if self.claim_p99_ms() >= CLAIM_P99_MS:
            problems.append(f"the 99th percentile of claims is {self.claim_p99_ms():.0f} ms")
        problems += [
            f"the page {name} takes {ratio:.2f} times as long as without live runs"
            for name, ratio in self.page_ratios().items()
            if ratio > PAGES_RATIO
        ]
        return problems


def table(found: Measured) -> list[str]:
    """The Markdown."""
    statements = "not counted" if found.statements_per_s is None else f"{found.statements_per_s:.0f} a second"
    p50, p95 = (float(np.percentile(found.claims_ms, q)) for q in (50, 95)) if found.claims_ms else (0.0, 0.0)
    pages = ", ".join(
        f"{name} {np.median(found.quiet_ms[name]):.0f} to {np.median(found.live_ms[name]):.0f} ms ({ratio:.2f})"
        for name, ratio in found.page_ratios().items()
    )
    rows = [
        ("hosts, sites, workers", f"{found.hosts:,} at {found.sites} sites, {found.workers} workers"),
        ("live runs, and runs that waited behind them", f"{found.live:,}, {found.queued:,}"),
        ("until all were live", f"{found.ramp_s:.0f} s"),
        ("one site cut for", f"{found.cut_s:.0f} s"),
        ("workers killed", str(found.killed)),
        ("runs lost", str(len(found.lost()))),
        ("jobs doubled, of those started", f"{len(found.doubled())} of {sum(found.starts().values()):,}"),
        ("runs adopted by another worker", str(found.adopted())),
        ("claim, p50 / p95 / p99", f"{p50:.0f} / {p95:.0f} / {found.claim_p99_ms():.0f} ms"),
        ("statements of the workers with all runs live", statements),
        ("connections to the database, all processes", str(found.connections)),
        ("memory per live run", f"{found.bytes_per_run / 1e6:.2f} MB"),
        ("most live runs of one worker", str(found.most_of_one_worker)),
        ("CPU of all workers with all runs live", f"{found.worker_cpu_ratio:.2f} cores"),
        ("commands on the hosts", f"{sum(site['commands'] for site in found.told):,}"),
        ("pages, quiet to live (ratio)", pages or "not measured"),
        ("load average of the machine", f"{found.load_average:.1f}"),
    ]
    return ["| | |", "| --- | --- |", *(f"| {name} | {value} |" for name, value in rows)]
