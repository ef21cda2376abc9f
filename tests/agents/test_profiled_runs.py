"""Whole runs with real profilers of real servers: what they find, what they count, and that nothing of them stays."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agents import events as e
from agents.profilers.topdown import NO_PMU
from agents.profiles.functions import functions_of
from agents.profiles.reading import read_profile
from agents.record import Record
from agents.spec import RunSpec
from tests import needs
from tests.agents.run_lab import LIBRARIES, Lab, Watched, WorkerDiedError, address_of, assert_left_as_it_was
from tests.agents.servers.test_liberty import ARCHIVE as LIBERTY
from tests.agents.servers.tomcat_install import unpack_tomcat
from tests.agents.specs import make_spec
from tests.sshd import exists

LOAD_S = 9
"""On a busy machine a JVM may take seconds to let a profiler in."""

JAVA = """
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;

public class Main {
  static final Object TILL = new Object();
  static volatile byte[] kept;
  static void hold() {
    try {
      while (true) { synchronized (TILL) { Thread.sleep(2); } Thread.sleep(2); }
    } catch (InterruptedException e) { }
  }
  static void pay() { synchronized (TILL) { TILL.notify(); } }
  static long burn(int n) { long s = n; for (int i = 0; i < n; i++) s = s * 31 + i % 7; return s; }
  public static void main(String[] given) throws Exception {
    String port = System.getProperty("quarkus.http.port"), address = System.getProperty("quarkus.http.host");
    var server = HttpServer.create(new InetSocketAddress(address, Integer.parseInt(port)), 0);
    new Thread(Main::hold).start();
    server.createContext("/", exchange -> {
      pay();
      kept = new byte[1 << 19];  // as much as lies between two samples of what is allocated
      byte[] said = ("hello " + burn(2_000_000)).getBytes();
      exchange.sendResponseHeaders(200, said.length);
      exchange.getResponseBody().write(said);
      exchange.close();
    });
    server.start();
  }
}
"""
PYTHON = """
def burn(n):
    return sum(i * i % 7 for i in range(n))

def app(environ, start_response):
    body = b"hello %d" % burn(20000)
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]
"""
NODE = """
function burn (n) { let s = 0; for (let i = 0; i < n; i++) s = (s * 31 + i % 7) | 0; return s }
require('http').createServer((_, answer) => answer.end('hello ' + burn(1_000_000)))
  .listen(Number(process.env.PORT), process.env.HOST)
"""

MAIN = "[process.env.PORT, process.env.HOST] = process.argv.slice(2); require('./server.js')\n"


def server_of(kind: str, folder: Path) -> dict[str, Any]:
    """A server of this kind that is busy with a request; the test is skipped where its program is missing."""
    match kind:
        case "nginx":
            needs.require_program("nginx")
            return {"kind": "nginx", "pages": {"index.html": "hello\n" * 20_000}, "settings": {"worker_processes": "1"}}
        case "node":
            needs.require_program("node")
            (folder / "server.js").write_text(NODE)
            return {"kind": "node", "entry": f"{folder}/server.js"}
        case "python":
            (folder / "shop.py").write_text(PYTHON)
            needs.require(Path(sys.executable).with_name("gunicorn").exists(), "gunicorn", "pip install gunicorn")
            of_python = {"binary": sys.executable, "server": "gunicorn", "workers": 2}
            return {"kind": "python", "application": "shop:app", "directory": str(folder), **of_python}
        case "command of java":
            compiled(folder)
            options = ["-Dquarkus.http.port={port}", "-Dquarkus.http.host={address}", "-Xmx64m"]
            return {"kind": "command", "argv": ["java", *options, "-jar", f"{folder}/shop.jar"]}
        case "command of node":
            needs.require_program("node")
            (folder / "server.js").write_text(NODE)
            (folder / "main.js").write_text(MAIN)
            return {"kind": "command", "argv": ["node", f"{folder}/main.js", "{port}", "{address}"]}
        case "command of python":
            needs.require(Path(sys.executable).with_name("gunicorn").exists(), "gunicorn", "pip install gunicorn")
            (folder / "shop.py").write_text(PYTHON)
            bind = ["-b", "{address}:{port}", "--chdir", str(folder), "shop:app"]
            return {"kind": "command", "argv": [sys.executable, "-m", "gunicorn", *bind]}
        case "liberty":
            how = "bin/lab liberty-baseline fetches it; BENCHHUB_LIBERTY_ARCHIVE names another place"
            needs.require(LIBERTY.is_file(), f"the Liberty archive {LIBERTY.name}", how)
            needs.require_program("java", "unzip")
            subprocess.run(["unzip", "-q", str(LIBERTY), "-d", str(folder)], check=True)
            pages, ready = {"hello.war/index.html": "hello\n"}, {"path": "/hello/", "timeout_s": 600}
            return {"kind": "liberty", "home": f"{folder}/wlp", "dropins": pages, "ready": ready}
        case "tomcat":
            return {"kind": "tomcat", "home": str(unpack_tomcat(folder)), "jvm_options": ["-Xmx128m"]}
    compiled(folder)
    return {"kind": "jar", "jar": f"{folder}/shop.jar", "framework": "quarkus", "jvm_options": ["-Xmx64m"]}


def compiled(folder: Path) -> None:
    needs.require_program("java", "javac")
    (folder / "Main.java").write_text(JAVA)
    subprocess.run(["javac", "Main.java"], cwd=folder, check=True, timeout=300)
    subprocess.run(["jar", "cfe", "shop.jar", "Main", "Main.class"], cwd=folder, check=True, timeout=300)


def profiled_spec(lab: Lab, server: Mapping[str, Any], *profilers: str, load_s: int = LOAD_S) -> RunSpec:
    cpus = sorted(os.sched_getaffinity(0))
    spec = make_spec(
        server={"port": lab.port, "cpus": str(cpus[0]), "ready": {"timeout_s": 600}, **server},
        workload={
            "driver": {"kind": "wrk", "connections": 2, "threads": 1, "binary": str(lab.folder / "wrk")},
            "phases": [
                {"name": "warm-up", "kind": "warm_up", "duration_s": 2},
                {"name": "load", "kind": "measure", "duration_s": load_s},
            ],
            "cpus": str(cpus[-1]),
            "path": server.get("ready", {}).get("path", "/"),
        },
        sut=address_of("sut", lab.sut),
        drivers=(address_of("driver", lab.driver),),
    )
    return RunSpec.model_validate({**spec.model_dump(mode="json"), "profilers": profilers})


def require_profiler(name: str) -> None:
    match name.partition(":")[0]:
        case "async-profiler" | "jfr":
            needs.require_program("java", "jcmd")
            needs.require(LIBRARIES.is_dir(), "the jars of profilers", "bin/get-profilers fetches them")
        case "perf" | "topdown":
            needs.require_program("perf")
            works = subprocess.run(["perf", "stat", "-e", "task-clock", "true"], capture_output=True, check=False)
            needs.require(works.returncode == 0, "perf", needs.RIGHTS)
        case "py-spy":
            needs.require(Path(sys.executable).with_name("py-spy").exists(), "py-spy", "pip install py-spy")


OWN = (".benchhub", "benchhub-claim", ".gunicorn")
"""What BenchHub keeps of itself on a host between runs, and what gunicorn leaves behind by itself."""


def homes(lab: Lab) -> list[str]:
    """What else lies in the home directories of both hosts."""
    found = [path for host in (lab.sut, lab.driver) for path in host.home.iterdir() if not path.name.startswith(OWN)]
    return sorted(map(str, found))


def attached_to(pid: int | None) -> list[Path]:
    """What a JVM and who spoke to it leave in /tmp."""
    return list(Path("/tmp").glob(f".*_pid{pid}"))


WAITING = {"sun/nio/ch/EPoll.wait", "Arbiter.wait_for_signals", "EpollSelector.select"}
"""What waits for requests costs no CPU time."""

CASES = [
    ("jar", "async-profiler", "Main.burn"),
    ("jar", "async-profiler:wall", "Main.burn"),
    ("jar", "async-profiler:alloc", "byte[]"),
    ("jar", "async-profiler:lock", "Main.pay"),
    ("jar", "jfr", "Main.burn"),
    ("tomcat", "async-profiler", "org/apache/tomcat"),
    ("liberty", "async-profiler", "com/ibm/ws"),
    ("nginx", "perf", ""),
    ("python", "py-spy", "burn"),
    ("node", "node", "burn"),
    ("command of java", "async-profiler", "Main.burn"),
    ("command of java", "jfr", "Main.burn"),
    ("command of node", "node", "burn"),
    ("command of python", "py-spy", "burn"),
]


@pytest.mark.parametrize("kind, profiler, function", CASES, ids=[f"{name} of {kind}" for kind, name, _ in CASES])
async def test_a_server_is_profiled_in_a_window_of_the_load_and_nothing_stays(
    lab: Lab, kind: str, profiler: str, function: str, tmp_path: Path
) -> None:
    needs.require_program("wrk")
    require_profiler(profiler)
    server, before = server_of(kind, tmp_path), homes(lab)
    # For JFR a JVM is started beside the server, and loads its recorder: seconds on a busy machine.
    load_s = 2 * LOAD_S if profiler == "jfr" else LOAD_S
    watched = Watched(lab)
    record = await watched.run(profiled_spec(lab, server, profiler, load_s=load_s))
    assert record.failed is None, watched.log
    assert_left_as_it_was(lab, record)
    assert homes(lab) == before
    assert len(watched.of(e.ProfileTaken)) == 1, watched.log
    (taken,) = watched.of(e.ProfileTaken)
    assert (taken.role, f"{taken.profiler}:{taken.event}".removesuffix(":cpu")) == ("", profiler)
    assert 0 < taken.start_s < taken.end_s < load_s
    report = record.reports[1].report
    assert taken.requests == pytest.approx(
        report["requests"] * (taken.end_s - taken.start_s) / report["duration_s"], abs=1
    )
    assert 0 < taken.cpu_time_s < taken.end_s - taken.start_s + 0.1
    assert not any(exists(job.pid) for job in record.started_jobs.values() if job.pid)
    profile = read_profile(watched.kept[taken.file])
    said = watched.profiles[taken.file]
    assert said.window_s == (taken.start_s, taken.end_s)
    if profiler in ("jfr", "node", "perf"):  # whose files say when, by a clock of the host
        assert profile.slices is not None
        assert said.clock_s is not None
        begin_s = profile.slices.start_s - said.clock_s
        assert taken.start_s - 1 < begin_s < begin_s + len(profile.slices) * profile.slices.step_s < taken.end_s + 1
    costs = functions_of(profile)
    assert not WAITING & {name for name, ratio in costs.self_ratio.items() if ratio > 0.1 and taken.event == "cpu"}
    if function:
        assert any(function in name for name in costs.total_ratio), sorted(costs.total_ratio)[:50]
    assert len(profile) > 0


async def test_counters_are_taken_beside_another_profiler_and_a_host_without_them_says_so(
    lab: Lab, tmp_path: Path
) -> None:
    needs.require_program("wrk", "perf", "node")
    require_profiler("topdown")
    watched = Watched(lab)
    record = await watched.run(profiled_spec(lab, server_of("node", tmp_path), "node", "topdown"))
    assert record.failed is None, watched.log
    assert_left_as_it_was(lab, record)
    counted = record.profiles["", "topdown", "counters"]
    assert counted.counters["page_faults_per_cpu_s"] >= 0
    assert (NO_PMU in watched.log) is ("instructions_per_cycle" not in counted.counters)
    assert record.profiles["", "node", "cpu"].samples


async def test_another_worker_takes_the_profile_and_removes_what_the_dead_one_brought(lab: Lab, tmp_path: Path) -> None:
    needs.require_program("wrk")
    require_profiler("async-profiler")
    spec, before = profiled_spec(lab, server_of("jar", tmp_path), "async-profiler", load_s=12), homes(lab)
    first = Watched(lab)

    def die(event: e.AnyEvent) -> None:
        if any(isinstance(one, e.JobStarted) and one.name.startswith("profile-") for one in first.events):
            raise WorkerDiedError

    first.on_event = die
    with pytest.raises(WorkerDiedError):
        await first.run(spec)
    assert lab.directory(lab.sut).joinpath("profilers-sut", "libasyncProfiler.so").exists()
    second = Watched(lab, fence=2, events=list(first.events))
    record = await second.run(spec, Record.fold(first.events))
    assert record.failed is None, second.log
    assert_left_as_it_was(lab, record)
    assert homes(lab) == before
    assert len(second.of(e.ProfileTaken)) == 1
    assert not attached_to(record.started_jobs["server"].pid)


async def test_a_host_that_cannot_be_profiled_says_so_before_anything_is_changed(lab: Lab, tmp_path: Path) -> None:
    needs.require_program("java")
    watched = Watched(lab)
    spec = profiled_spec(lab, server_of("jar", tmp_path), "async-profiler")
    runner = watched.runner(spec)
    runner._control = replace(runner._control, libraries=tmp_path / "nothing")
    await runner.run()
    record = Record.fold(watched.events)
    assert record.failed is not None
    assert "async-profiler-4.5.jar" in record.failed.message
    assert "bin/get-profilers" in record.failed.hint
    assert not record.snapshots
    assert not record.intended
