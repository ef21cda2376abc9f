"""Runs under random faults for as long as asked: `python -m bench.soak --minutes 60`. Exit status 1 = something broke.

Everything is private to it: PostgreSQL, Redis, hosts and workers live below one directory and end with it. As root the
hosts are those of the lab (docs/lab.md), else sshd on the loopback address, without link faults and reboots.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench.soak_play import Report, Usage

WARM_UP_RATIO = 0.1
"""The share of the samples that is left out before memory and open files are compared."""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--hosts", type=int, default=4, choices=range(2, 9), metavar="2-8")
    parser.add_argument("--workers", type=int, default=4, choices=range(2, 17), metavar="2-16")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 16))
    parser.add_argument("--only", default="", help="only the faults that have this in their name")
    parser.add_argument("--json", type=Path, help="write the figures there as well")
    parser.add_argument("--directory", type=Path, help="keep everything here, with the logs (default: a temporary one)")
    given = parser.parse_args()
    if given.directory is None:
        with tempfile.TemporaryDirectory(prefix="benchhub-soak-") as directory:
            report = soak(given, Path(directory))
    elif given.directory.exists():
        parser.error(f"{given.directory} exists already; a soak begins from nothing.")
    else:
        given.directory.mkdir(parents=True)
        report = soak(given, given.directory.absolute())
    print(table(report))
    if given.json:
        given.json.write_text(json.dumps(report.to_json(), indent=1) + "\n")
    return 1 if report.broken else 0


def soak(given: argparse.Namespace, directory: Path) -> Report:
    """The settings are read once, so the environment comes first and the imports after it."""
    directory.chmod(0o755)  # PostgreSQL's account must get through
    for name in ("DATABASE_URL", "REDIS_URL", "SECRET_KEY", "BENCHHUB_KEY_FILE"):
        os.environ.pop(name, None)
    os.environ["BENCHHUB_DATA_DIR"] = str(directory / "data")
    os.environ["BENCHHUB_HOST_NETWORKS"] = "127.0.0.0/8,::1/128"  # where namespaces cannot be made
    import bench.django_project  # noqa: F401
    from bench.soak_play import Plan, play
    from benchhub import embedded

    folder = directory / "stage"
    folder.mkdir()
    try:
        return play(Plan(given.minutes, given.hosts, given.workers, given.seed, given.only), folder, _say)
    finally:
        embedded.stop(directory / "data")


def _say(line: str) -> None:
    print(line, flush=True)


def table(report: Report) -> str:
    """The report as Markdown."""
    started = sum(report.runs_by_outcome.values())
    rows = [
        ("hosts", f"{report.mode}, seed {report.seed}, {report.minutes:g} min"),
        ("runs", f"{started}: {_counted(report.runs_by_outcome)}"),
        ("validity of their figures", _counted(report.runs_by_validity)),
        ("faults", f"{sum(report.faults.values())}: {_counted(report.faults)}"),
        ("adoptions", f"{report.adoptions}, at most {report.most_attempts} workers for one run"),
        ("runs whose restore was verified", str(report.restores_verified)),
        ("quarantines, by what was done to the host", _counted(report.quarantines)),
        ("hosts that came back into service", _counted(report.returns)),
        *((f"growth of {name} after its warm-up", _growth(usage)) for name, usage in report.usage.items()),
        ("looks at all invariants", str(report.checks)),
        ("invariants broken", str(len(report.broken))),
    ]
    lines = ["| | |", "| --- | --- |", *(f"| {name} | {value} |" for name, value in rows)]
    return "\n".join([*lines, *(f"- {problem}" for problem in report.broken)])


def _counted(counts: dict[str, int]) -> str:
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    return ", ".join(f"{count} {name or 'none'}" for name, count in ordered) or "none"


def _growth(usage: list[Usage]) -> str:
    first, last = usage[int(len(usage) * WARM_UP_RATIO)], usage[-1]
    minutes = (last.at_s - first.at_s) / 60
    rss = f"{first.rss_bytes / 1e6:.0f} -> {last.rss_bytes / 1e6:.0f} MB"
    return f"{rss}, {first.open_files} -> {last.open_files} open files, in {minutes:.0f} min"


if __name__ == "__main__":
    sys.exit(main())
