"""Measures a fleet: 1,000 simulated hosts at three sites, 500 live runs, one site cut, a worker of each site killed.

Everything is private to it and ends with it: PostgreSQL, Redis, web, beat, workers, and hosts on loopback addresses.
What simulated hosts do and do not do stands in bench/fleet/simulated.py. Prints Markdown; exit status 1 when a run is
lost or a job doubled, when the 99th percentile of claims is a second or more, or a page takes more than 1.5 times as
long as without live runs.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench.fleet.judged import Measured


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # and so ends what it has started
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--hosts", type=int, default=1000, help="in all, an even number at each site")
    parser.add_argument("--sites", type=int, default=3, choices=range(1, 4))
    parser.add_argument("--live", type=int, default=500, help="live runs, two hosts each")
    parser.add_argument("--queued", type=int, default=5000, help="runs that wait behind them")
    parser.add_argument("--workers", type=int, default=4, help="workers of each site")
    parser.add_argument("--threads", type=int, default=64, help="runs that a worker may hold")
    parser.add_argument("--minutes", type=float, default=20.0, help="how long each load takes: longer than the start")
    parser.add_argument("--cut-s", type=float, default=120.0, help="how long one site is cut; 0 = no faults")
    parser.add_argument("--requests", type=int, default=15, help="of each page, before and with live runs; 0 = no web")
    parser.add_argument("--beginning", type=int, default=20, help="runs that may be on their way to their load at once")
    parser.add_argument("--heartbeat-s", type=int, default=3)
    parser.add_argument("--interval-s", type=float, default=30.0, help="between two readings of the monitors")
    parser.add_argument("--directory", type=Path, help="keep everything here, with the logs (default: a temporary one)")
    parser.add_argument("--pull", action="store_true", help="workers that fetch their runs over HTTP and have the keys")
    given = parser.parse_args()
    if given.live * 2 > given.hosts:
        parser.error("--live: a run has two hosts")
    if given.hosts % (2 * given.sites):
        given.hosts += 2 * given.sites - given.hosts % (2 * given.sites)
    if given.directory is None:
        with tempfile.TemporaryDirectory(prefix="benchhub-fleet-", ignore_cleanup_errors=True) as directory:
            found = measure(given, Path(directory))
    else:
        given.directory.mkdir(parents=True, exist_ok=True)
        found = measure(given, given.directory.absolute())
    from bench.fleet.judged import table

    print("\n".join(table(found)))
    missed = found.missed()
    print("\n".join(f"- {problem}" for problem in missed[:50]))
    return 1 if missed else 0


def measure(given: argparse.Namespace, directory: Path) -> Measured:
    """The settings are read once, so the environment comes first and the imports after it."""
    directory.chmod(0o755)  # PostgreSQL's account must get through
    for name in ("DATABASE_URL", "REDIS_URL", "SECRET_KEY", "BENCHHUB_KEY_FILE"):
        os.environ.pop(name, None)
    os.environ["BENCHHUB_DATA_DIR"] = str(directory / "data")
    os.environ["BENCHHUB_HOST_NETWORKS"] = "127.0.0.0/8,::1/128"
    import bench.django_project  # noqa: F401
    from bench.fleet.play import Plan, play
    from benchhub import embedded

    plan = Plan(
        hosts=given.hosts, sites=given.sites, live=given.live, queued=given.queued, workers=given.workers,
        threads=given.threads, load_s=int(given.minutes * 60), cut_s=given.cut_s, heartbeat_s=given.heartbeat_s,
        interval_s=given.interval_s, requests=given.requests, pull=given.pull, beginning=given.beginning,
    )  # fmt: skip
    (directory / "play").mkdir()
    try:
        return play(plan, directory / "play", _say)
    finally:
        embedded.stop(directory / "data")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
