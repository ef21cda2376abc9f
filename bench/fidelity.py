"""Measures whether BenchHub's figures are those of the tool by hand, and what its monitors cost on the SUT.

The same wrk command against the same nginx runs by hand and through BenchHub (a detached job on an SSH host, monitors
on both sides), in pairs whose order alternates. nginx is on one CPU, wrk on another. Prints Markdown.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import secrets
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from agents.base.command import Command
from agents.base.session import Session
from agents.drivers.base.driver import Target
from agents.drivers.wrk.wrk import Wrk
from agents.events import AnyEvent
from agents.monitors import MONITORS
from agents.remote.address import Address
from agents.remote.jobs import Job
from agents.remote.ssh import connect
from agents.running.monitoring import Monitoring
from bench.sshd import free_port, running_hosts
from bench.web import wait_until_it_answers
from experiments.analysis.verdict import judge

ADDRESS = "127.0.0.1"
BODY = "x" * 1024
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
MONITORS_USED = [MONITORS[kind] for kind in ("cpu", "memory", "network", "threads")]

_NGINX = """\
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/nginx.log;
worker_processes 1;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  keepalive_requests 100000000;
  client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
  uwsgi_temp_path {folder}; scgi_temp_path {folder};
  server {{ listen {address}:{port}; location / {{ return 200 "{body}"; }} }}
}}
"""


@dataclass(frozen=True)
class Setup:
    """What both ways share."""

    tool: Wrk
    url: str
    duration_s: int
    driver_cpus: str
    server_pid: int

    @property
    def command(self) -> Command:
        return self.tool.command(Target(self.url), self.duration_s)


@dataclass(frozen=True)
class Found:
    """Throughput by hand and through BenchHub, pair by pair, and the monitors' share of one core on the SUT."""

    pairs: Sequence[tuple[float, float]]
    monitor_cpu_ratio: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--seconds", type=int, default=5, help="duration of each load")
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--monitor-seconds", type=int, default=60, help="how long the monitors' cost is measured")
    parser.add_argument("--server-cpus", default="0")
    parser.add_argument("--driver-cpus", default="1")
    given = parser.parse_args()
    tool = Wrk(connections=given.connections, threads=1)
    with (
        tempfile.TemporaryDirectory(prefix="benchhub-fidelity-") as place,
        running_hosts(_made(place), 2) as hosts,
        _nginx(Path(place), given.server_cpus) as (url, pid),
    ):
        setup = Setup(tool, url, given.seconds, given.driver_cpus, pid)
        sut, driver = hosts.addresses
        found = asyncio.run(
            _measure(setup, sut, driver, hosts.private_key, Path(place), given.pairs, given.monitor_seconds)
        )
    print("\n".join(table(found, given.seconds, given.monitor_seconds)))


def table(found: Found, seconds: int, monitor_seconds: int) -> list[str]:
    """The Markdown: the ratio with its interval, and the monitors' cost."""
    by_hand = [hand for hand, _ in found.pairs]
    through = [benchhub for _, benchhub in found.pairs]
    verdict = judge(by_hand, through, higher_is_better=True, margin_ratio=0.01, design="blocked")
    low, high = verdict.ci95_pct or (float("nan"), float("nan"))
    return [
        "| figure | value |",
        "| --- | ---: |",
        f"| wrk by hand, median | {statistics.median(by_hand):,.0f} requests/s |",
        f"| through BenchHub, median | {statistics.median(through):,.0f} requests/s |",
        f"| BenchHub : by hand, {len(by_hand)} pairs of {seconds} s | {1 + (verdict.estimate_pct or 0) / 100:.4f} |",
        f"| its 95 % interval | {1 + low / 100:.4f} to {1 + high / 100:.4f} |",
        f"| noise from repetition to repetition | {verdict.cov_pct or float('nan'):.1f} % |",
        f"| the monitors on the SUT over {monitor_seconds} s, of one core | {found.monitor_cpu_ratio * 100:.2f} % |",
    ]


async def _measure(
    setup: Setup, sut: Address, driver: Address, private_key: str, folder: Path, pairs: int, monitor_seconds: int
) -> Found:
    found = []
    async with _session(sut, private_key) as sut_session, _session(driver, private_key) as driver_session:
        await asyncio.to_thread(_by_hand, setup)  # warm-up
        for number in range(pairs):
            jobs = str(folder / f"job-{number}")
            if number % 2:
                through = await _through_benchhub(setup, sut_session, driver_session, jobs)
                found.append((await asyncio.to_thread(_by_hand, setup), through))
            else:
                by_hand = await asyncio.to_thread(_by_hand, setup)
                found.append((by_hand, await _through_benchhub(setup, sut_session, driver_session, jobs)))
        return Found(found, await _monitor_cost(setup, sut_session, monitor_seconds))


async def _monitor_cost(setup: Setup, sut: Session, seconds: int) -> float:
    """The share of one core that the monitor loop takes; over a long time, as CPU time is told in ticks of 10 ms."""
    ending = set(_monitors_of(setup.server_pid))  # of the last pair
    async with Monitoring(sut, "sut", MONITORS_USED, _ignore, pids=(setup.server_pid,), interval_s=1.0):
        loop_pid = await _new_monitor(setup.server_pid, ending)
        before_s, began_s = _cpu_s(loop_pid), time.monotonic()
        await asyncio.sleep(seconds)
        return (_cpu_s(loop_pid) - before_s) / (time.monotonic() - began_s)


async def _ignore(event: AnyEvent) -> None:
    """The samples are of no interest here."""


def _by_hand(setup: Setup) -> float:
    argv = ["taskset", "-c", setup.driver_cpus, *setup.command.argv]
    output = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=setup.duration_s + 60).stdout
    return _throughput_rps(setup, output)


async def _through_benchhub(setup: Setup, sut: Session, driver: Session, directory: str) -> float:
    """As a run does it: a job with affinity, monitors on both hosts, looks at the job that are rare while it works."""
    output = bytearray()

    async def keep(stream: str, offset: int, data: bytes) -> None:
        output.extend(data)

    job = Job(driver, directory)
    async with Monitoring(sut, "sut", MONITORS_USED, _ignore, pids=(setup.server_pid,), interval_s=1.0):
        started = await job.start(
            setup.command, cookie=secrets.token_hex(16), cwd=tempfile.gettempdir(), cpus=setup.driver_cpus
        )
        pids = [started.pid] if started.pid else []
        async with Monitoring(driver, "driver", MONITORS_USED, _ignore, pids=pids, interval_s=1.0):
            await asyncio.sleep(setup.duration_s)
            status = await job.follow(keep, interval_s=0.2, deadline_s=60)
    if status.exit_status != 0:
        raise SystemExit(f"wrk is {status.state} with exit status {status.exit_status}")
    return _throughput_rps(setup, output.decode())


def _throughput_rps(setup: Setup, output: str) -> float:
    throughput_rps = setup.tool.parse(output).throughput_rps
    if not throughput_rps:
        raise SystemExit(f"wrk gave no throughput:\n{output}")
    return throughput_rps


async def _new_monitor(server_pid: int, ending: set[int]) -> int:
    """The process of the monitor loop on the SUT, once it has started."""
    for _ in range(500):
        found = set(await asyncio.to_thread(_monitors_of, server_pid)) - ending
        if found:
            return found.pop()
        await asyncio.sleep(0.02)
    raise SystemExit("The monitor loop was not found.")


def _monitors_of(server_pid: int) -> list[int]:
    processes = [entry for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [int(process.name) for process in processes if _is_monitor(process, server_pid)]


def _is_monitor(process: Path, server_pid: int) -> bool:
    """Whether the process is the shell whose text is the monitor loop for this server."""
    try:
        words = (process / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return False  # it ended meanwhile
    return words[:2] == [b"sh", b"-c"] and words[2].startswith(b"while ") and b"/proc/%d/" % server_pid in words[2]


def _cpu_s(pid: int) -> float:
    """CPU seconds of a process and of its children that have ended (utime, stime, cutime, cstime)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return sum(int(field) for field in fields[11:15]) / TICKS_PER_S


@asynccontextmanager
async def _session(address: Address, private_key: str) -> AsyncIterator[Session]:
    session = await connect(address, private_key)
    try:
        yield session
    finally:
        await session.close()


@contextmanager
def _nginx(folder: Path, cpus: str) -> Iterator[tuple[str, int]]:
    """nginx with one worker on `cpus`; yields the URL and the pid of the worker."""
    nginx = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if nginx is None:
        raise SystemExit("nginx is not installed.")
    port = free_port(ADDRESS)
    config = folder / "nginx.conf"
    config.write_text(_NGINX.format(folder=folder, address=ADDRESS, port=port, body=BODY))
    process = subprocess.Popen(["taskset", "-c", cpus, nginx, "-p", str(folder), "-c", str(config)])
    try:
        url = f"http://{ADDRESS}:{port}/"
        wait_until_it_answers(url)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
        yield url, int(re.findall(r"\d+", children)[0])
    finally:
        process.terminate()
        process.wait(timeout=10)


def _made(place: str) -> Path:
    folder = Path(place) / "hosts"
    folder.mkdir()
    return folder


if __name__ == "__main__":
    main()
