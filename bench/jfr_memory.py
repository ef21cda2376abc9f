"""Measures the memory that a recording of JDK Flight Recorder of 200 MB takes, and a large profile that is sent.

A JVM of many threads whose stacks all differ is recorded for some seconds. The recording is made a profile of a run as
the worker does it for the profiler `jfr`: converted, read, stored. Then a converted profile of 100,000 stacks is sent
to a real web process. Runs in the embedded PostgreSQL of BENCHHUB_DATA_DIR (give it a
scratch directory) and keeps its team `recordings` there. Prints Markdown; exit status 1 when a process had more than
400 MB. Needs a JDK and the jars of bin/get-profilers (BENCHHUB_PROFILERS).
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import gzip
import json
import os
import subprocess
import sys
import tempfile
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command

import bench.django_project  # noqa: F401 - before the models
from agents.profilers.jfr import CONVERTER
from agents.profiles.base.folding import Folding
from agents.profiles.base.profile import About
from agents.profiles.base.taken import TakenProfile
from agents.profiles.pprof.otlp_format import write
from agents.profiles.reading import read_profile
from agents.running.profile_parts import read_parts
from agents.running.profiler_files import converted
from bench.made_up_profiles import many_stacks
from bench.memory import memory_bytes, reset_peak_bytes
from bench.sshd import free_port
from bench.web import ADDRESS, wait_until_it_answers
from experiments.models import Member, Role, Run, Team
from experiments.registry.teams.tokens import issue
from experiments.running.executing.recorder import Recorder

LIMIT_BYTES = 400_000_000
LEAST_BYTES = 200_000_000
MOST_SECONDS = 60
LOOK_S = 0.02
PROGRAM = """
import java.util.Random;

public class Busy {
  static volatile Object keep;
  static int deep(int n, int way, Random r) {
    if (n == 0) { keep = new byte[r.nextInt(3000)]; return way; }
    return (way >>> n % 13 & 1) == 0 ? one(n - 1, way, r) : two(n - 1, way, r);
  }
  static int one(int n, int way, Random r) { return deep(n, way, r) + 1; }
  static int two(int n, int way, Random r) { return deep(n, way, r) ^ 3; }
  public static void main(String[] given) {
    long until = System.nanoTime() + Long.parseLong(given[0]) * 1_000_000_000L;
    for (int i = 0; i < 8; i++) {
      Random r = new Random(i);
      new Thread(() -> { while (System.nanoTime() < until) deep(20 + r.nextInt(30), r.nextInt(), r); }).start();
    }
  }
}
"""
SETTINGS = """<?xml version="1.0" encoding="UTF-8"?>
<configuration version="2.0">
  <event name="jdk.ExecutionSample"><setting name="enabled">true</setting><setting name="period">1 ms</setting></event>
  <event name="jdk.ObjectAllocationInNewTLAB">
    <setting name="enabled">true</setting><setting name="stackTrace">true</setting>
  </event>
  <event name="jdk.ObjectAllocationOutsideTLAB">
    <setting name="enabled">true</setting><setting name="stackTrace">true</setting>
  </event>
</configuration>
"""
JVM = ("-Xmx64m", "-Xmn16m", "-XX:TLABSize=4k", "-XX:-ResizeTLAB", "-XX:FlightRecorderOptions=stackdepth=128")


def main() -> int:
    call_command("migrate", verbosity=0)
    run, token = _run()
    with tempfile.TemporaryDirectory(prefix="benchhub-jfr-") as temporary:
        recording = _recording(Path(temporary))
        size_bytes = recording.stat().st_size
        worker_bytes, converter_bytes = _stored(recording, run, Path(temporary))
    sent = _converted_elsewhere()
    web_bytes = _sent(run, token, sent)
    print("| what | file, MB | most memory of the process, MB |\n| --- | ---: | ---: |")
    found = [("jfr-converter", size_bytes, converter_bytes), ("worker", size_bytes, worker_bytes)]
    found.append(("web process, a converted profile of 100,000 stacks sent", len(sent), web_bytes))
    for what, file_bytes, most_bytes in found:
        print(f"| {what} | {file_bytes / 1e6:,.0f} | {most_bytes / 1e6:,.0f} |")
    return int(max(most for _, _, most in found) > LIMIT_BYTES)


def _converted_elsewhere() -> bytes:
    """A profile of 100,000 stacks as the converter writes it, compressed: what somebody sends."""
    folding = Folding()
    for frames, weight in read_profile(many_stacks(np.random.default_rng(1), 100_000)).stacks():
        folding.add([folding.frame(frame.name, frame.place) for frame in frames], weight)
    return gzip.compress(write(folding, About("samples", "cpu")), 6, mtime=0)


def _recording(folder: Path) -> Path:
    """A recording of that size: for longer where a try was too short. SystemExit when there is none in a minute."""
    (folder / "Busy.java").write_text(PROGRAM)
    (folder / "busy.jfc").write_text(SETTINGS)
    subprocess.run(["javac", "Busy.java"], cwd=folder, check=True)
    seconds, path = 5, folder / "busy.jfr"
    while seconds <= MOST_SECONDS:
        record = "-XX:StartFlightRecording:settings=busy.jfc,filename=busy.jfr,maxsize=4g"
        argv = ["java", *JVM, record, "Busy", str(seconds)]
        subprocess.run(argv, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        if path.stat().st_size >= LEAST_BYTES:
            return path
        seconds *= 2
    raise SystemExit(f"The JVM recorded only {path.stat().st_size / 1e6:.0f} MB.")


def _stored(recording: Path, run: Run, folder: Path) -> tuple[int, int]:
    """The most memory of this process, which does the worker's part, and of the converter."""
    reset_peak_bytes()
    with _most_of_children() as most:
        files = asyncio.run(converted(CONVERTER, Path(settings.BENCHHUB_PROFILERS), [recording], folder))
    packed = gzip.compress(read_parts(files).content, 6, mtime=0)
    taken = TakenProfile(profiler="jfr", event="cpu", engine="jfr", window_s=(1.0, 60.0), form="otlp")
    Recorder(run.pk, run.fence).keep_profile(taken, packed)
    return memory_bytes("VmHWM"), max(most)


@contextlib.contextmanager
def _most_of_children() -> Iterator[list[int]]:
    """The most memory that any program had which this process started, looked at every 20 ms until it ended."""
    most, ended = [0], threading.Event()

    def look() -> None:
        while not ended.wait(LOOK_S):
            for children in Path("/proc/self/task").glob("*/children"):
                with contextlib.suppress(OSError, SystemExit):
                    most.extend(memory_bytes("VmHWM", pid) for pid in children.read_text().split())

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield most
    finally:
        ended.set()
        looking.join()


def _sent(run: Run, token: str, content: bytes) -> int:
    """The most memory of a web process that was sent this profile."""
    port = free_port(ADDRESS)
    argv = [sys.executable, "-m", "benchhub.web", "--host", ADDRESS, "--port", str(port)]
    process = subprocess.Popen(argv, env=os.environ)
    try:
        wait_until_it_answers(f"http://{ADDRESS}:{port}/healthz")
        address = f"http://{ADDRESS}:{port}/api/v1/runs/{run.number}/profiles"
        body = {"profiler": "p", "name": "sent", "event": "cpu", "content": base64.b64encode(content).decode()}
        _ask(address, token, json.dumps(body).encode())
        return memory_bytes("VmHWM", process.pid)
    finally:
        process.terminate()
        process.wait(timeout=30)


def _ask(address: str, token: str, body: bytes) -> None:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(address, data=body, headers=headers)  # noqa: S310 - our own
    with urllib.request.urlopen(request, timeout=300) as answer:  # noqa: S310 - our own
        while answer.read(1 << 20):
            pass


def _run() -> tuple[Run, str]:
    user, _ = get_user_model().objects.get_or_create(username="bench", defaults={"email": "bench@localhost.invalid"})
    team, _ = Team.objects.get_or_create(slug="recordings", defaults={"name": "recordings"})
    member, _ = Member.objects.get_or_create(team=team, user=user, defaults={"role": Role.ADMIN})
    run, _ = Run.objects.get_or_create(team=team, number=1, defaults={"state": Run.State.FINISHED})
    run.profiles.all().delete()
    return run, issue(member, name="recordings", scopes=["read", "launch"])[1]


if __name__ == "__main__":
    sys.exit(main())
