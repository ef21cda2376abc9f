"""How long `manage.py up` takes to be ready on data that is there already, and how much CPU time all its processes use.

Wall time is that of the machine as it is; CPU time hardly depends on what else runs there. Workers are ready when they
say so in their logs, which may be after the pages are there.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.sshd import free_port
from benchhub.embedded import PROJECT_DIR
from benchhub.supervisor import ADDRESS

READY = "BenchHub is ready"
WORKERS = ("worker-runs", "worker-default")
LOOK_EVERY_S = 0.05
PATIENCE_S = 600.0
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Start:
    """Wall time to the pages and to both workers, and the CPU time of all processes at these moments."""

    pages_s: float
    pages_cpu_s: float
    workers_s: float
    workers_cpu_s: float


def start_once(data_dir: Path, command: str) -> Start:
    """Start, wait until all is there, stop. SystemExit when it ends by itself."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("BENCHHUB_", "DJANGO_"))}
    argv = [sys.executable, "manage.py", *command.split(), "--port", str(free_port(ADDRESS))]
    logs = {name: data_dir / "logs" / f"{name}.log" for name in WORKERS}
    before = {name: path.stat().st_size if path.exists() else 0 for name, path in logs.items()}
    output = data_dir / "output"
    begin = time.monotonic()
    with output.open("wb") as file:
        process = subprocess.Popen(
            argv,
            cwd=PROJECT_DIR,
            env=environment | {"BENCHHUB_DATA_DIR": str(data_dir)},
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    try:
        pages = _when(lambda: READY in output.read_text(), process, begin)
        workers = _when(lambda: all(_said_ready(path, before[name]) for name, path in logs.items()), process, begin)
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE_S)
    return Start(*pages, *workers)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--command", default="up", help='of manage.py ("up"); "demo --archive FILE" starts its hosts, too'
    )
    parser.add_argument("--times", type=int, default=5, help="starts on the data of the first one (5)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="benchhub-bench-start-") as place:
        starts = [start_once(Path(place), given.command) for _ in range(given.times + 1)]
    print(f"`manage.py {given.command.split()[0]}`, {given.times} starts, load average {os.getloadavg()[0]:.1f}:\n")
    print("| | first start | median of the others | range |\n| --- | ---: | ---: | ---: |")
    first, *others = starts
    for name in Start.__dataclass_fields__:
        what, _, unit = name.partition("_")
        values = sorted(getattr(start, name) for start in others)
        label = f"{what} ready, {'CPU time' if unit.startswith('cpu') else 'wall time'}, s"
        middle = statistics.median(values)
        print(f"| {label} | {getattr(first, name):.1f} | {middle:.1f} | {values[0]:.1f} to {values[-1]:.1f} |")


def _when(is_so: Callable[[], bool], process: subprocess.Popen[bytes], begin: float) -> tuple[float, float]:
    """Wall time since `begin` and CPU time of the process and all below it, as soon as it is so."""
    while not is_so():
        if process.poll() is not None or time.monotonic() - begin > PATIENCE_S:
            raise SystemExit("BenchHub did not start.")
        time.sleep(LOOK_EVERY_S)
    return time.monotonic() - begin, sum(map(_cpu_s, _tree(process.pid)))


def _said_ready(log: Path, offset: int) -> bool:
    return log.exists() and b" ready." in log.read_bytes()[offset:]


def _tree(pid: int) -> Iterator[int]:
    yield pid
    with contextlib.suppress(OSError):  # it has just ended
        for children in Path(f"/proc/{pid}/task").glob("*/children"):
            for child in children.read_text().split():
                yield from _tree(int(child))


def _cpu_s(pid: int) -> float:
    """Of the process, and of those of its children that have ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / _TICKS


if __name__ == "__main__":
    main()
