"""Several instances of a server, each with its own port and CPUs, under load at the same time."""

from __future__ import annotations

import os
import sys
from typing import Any

import pytest
from pydantic import ValidationError

from agents.base.errors import HostError
from agents.events import ConfigurationCaptured, JobEnded, LoadReported
from agents.monitors.base import Reading
from agents.monitors.threads import ThreadsMonitor
from agents.plan import build_plan
from agents.record import Record
from agents.running.tuning import EACH, host_steps
from agents.servers.command import CommandServer
from agents.servers.tomcat.server import Tomcat
from tests import needs
from tests.agents.run_lab import Lab, Watched, die_when, free_port, lab, lab_hosts, needs_wrk, port_is_free
from tests.agents.specs import make_spec

__all__ = ["lab", "lab_hosts"]  # fixtures

CPUS = sorted(os.sched_getaffinity(0))
FILE = {"kind": "file", "path": "extra.txt", "content": "tuned\n"}


def two(**server: Any) -> CommandServer:
    return CommandServer.model_validate({"argv": ["x", "{port}"], "instance_cpus": ["0-1", "2,3"], **server})


@pytest.mark.parametrize(
    ("server", "problem"),
    [
        ({"cpus": "5"}, "not both"),
        ({"instance_cpus": ["0", ""]}, "names CPUs that no other has"),
        ({"instance_cpus": ["0-1", "1-2"]}, "names CPUs that no other has"),
        ({"port": 65535}, "ports above 65535"),
        ({"argv": ["x", "8080"]}, r"write \{port\} in argv or in a file"),
    ],
)
def test_instances_that_cannot_run_side_by_side_are_refused(server: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        two(**server)


def test_each_instance_is_a_server_of_its_own() -> None:
    server = two(port=9000, files={"a.conf": "listen {port};"})
    second = server.instance(1)
    assert (server.count, server.all_cpus) == (2, "0-3")
    assert (second.port, second.cpus, second.count) == (9001, "2-3", 1)
    assert (second.argv, second.files) == (("x", "9001"), {"a.conf": "listen 9001;"})
    alone = CommandServer(argv=("x", "{address}:{port}"), port=9000)
    assert [alone.instance(0).argv[1], alone.instance(0, "10.0.0.5").argv[1]] == ["0.0.0.0:9000", "10.0.0.5:9000"]
    chosen = CommandServer(argv=("x", "{address}"), listen="::1")
    assert chosen.instance(0, "10.0.0.5").argv[1] == "::1"
    tomcat = Tomcat(home="/opt/tomcat", port=8080, instance_cpus=("0", "1"))
    assert [tomcat.instance(number).port for number in range(tomcat.count)] == [8080, 8081]


def test_a_step_inside_the_instance_is_repeated_in_each_and_one_on_the_host_is_not() -> None:
    on_host = {"kind": "sysctl", "values": {"vm.swappiness": "10"}}
    spec = make_spec(steps=(FILE, on_host), server=two().model_dump())
    assert list(host_steps(spec)) == [1, 2, EACH + 1]
    assert [url.partition("//")[2] for url in spec.urls] == ["127.0.0.1:8080/", "127.0.0.1:8081/"]


def test_a_recipe_cannot_bind_instances_that_have_cpus_of_their_own() -> None:
    with pytest.raises(ValidationError, match="take out the affinity step, or instance_cpus"):
        make_spec(steps=({"kind": "affinity", "cpus": "0"},), server=two().model_dump())


def test_the_plan_shows_every_instance_and_a_tool_for_each() -> None:
    plan = build_plan(make_spec(server=two().model_dump()))
    items = {phase.name: phase.items for phase in plan.phases}
    titles = [item.title for item in items["start"]]
    assert titles[:2] == ["Start command on port 8080", "Start command on port 8081"]
    assert [item.note for item in items["start"][:2]] == ["CPUs 0-1", "CPUs 2-3"]
    assert len(items["measure"][0].commands) == 2


def serving(port: int) -> dict[str, Any]:
    argv = [sys.executable, "-u", "-m", "http.server", "--bind", "127.0.0.1", "{port}"]
    return {"argv": argv, "port": port, "cpus": "", "instance_cpus": [str(CPUS[0]), str(CPUS[-1])]}


def two_free_ports() -> int:
    while not port_is_free((port := free_port()) + 1):
        pass
    return port


@pytest.fixture
def spread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets tool and instances share the CPUs of a small machine: these tests are about the way, not about figures."""
    needs.require(len(CPUS) > 1, "two CPUs", "run it on a larger machine")
    monkeypatch.setattr("agents.runner.check_cpus", lambda spec, record: None)


@needs_wrk
async def test_instances_are_pinned_loaded_at_the_same_time_and_put_back(lab: Lab, spread: None) -> None:
    port = two_free_ports()
    watched = Watched(lab)
    record = await watched.run(lab.spec(FILE, **serving(port)))
    assert record.failed is None, record.failed
    assert record.restored is not None
    assert record.restored.differences == {}
    (reported,) = watched.of(LoadReported)
    assert [part.url for part in reported.parts] == [f"http://127.0.0.1:{port}/", f"http://127.0.0.1:{port + 1}/"]
    assert reported.report["requests"] == sum(part.report["requests"] for part in reported.parts)
    assert reported.report["connections"] == 4
    assert reported.output.startswith(f"== driver: http://127.0.0.1:{port}/\n")
    assert reported.start_spread_s is not None
    assert len(lab.starts) == 2
    captured = watched.of(ConfigurationCaptured)[0].values
    assert captured["process.cpus"] == str(CPUS[0])
    assert captured["instances.2.process.cpus"] == str(CPUS[-1])
    assert {1, EACH + 1} <= set(record.reverted)
    assert port_is_free(port)
    assert port_is_free(port + 1)


@needs_wrk
async def test_another_worker_goes_on_with_all_instances_and_tools(lab: Lab, spread: None) -> None:
    spec = lab.spec(FILE, phases=(("measure", 3),), **serving(two_free_ports()))
    events = await die_when(lab, spec, JobEnded)
    watched = Watched(lab, fence=2, events=list(events))
    record = await watched.run(spec, Record.fold(events))
    assert record.failed is None, record.failed
    assert len(lab.starts) == 2
    assert len(watched.of(LoadReported)[0].parts) == 2
    assert record.restored is not None
    assert record.restored.differences == {}


async def test_an_instance_that_is_not_on_its_cpus_fails_the_run(
    lab: Lab, spread: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = CommandServer.parse_effective
    monkeypatch.setattr(
        CommandServer, "parse_effective", lambda self, output: {**real(self, output), "process.cpus": "0-63"}
    )
    record = await Watched(lab).run(lab.spec(**serving(two_free_ports())))
    assert record.failed is not None
    assert record.failed.message.endswith("but /proc shows 0-63.")
    assert record.failed.cause == HostError.cause


async def test_an_instance_that_does_not_start_names_its_own_log(lab: Lab, spread: None) -> None:
    port = two_free_ports()
    serve = f"exec {sys.executable} -u -m http.server --bind 127.0.0.1 {{port}}"
    refuse = f"[ {{port}} = {port} ] || {{ echo no licence for {{port}}; exit 3; }}"
    watched = Watched(lab)
    record = await watched.run(lab.spec(**serving(port) | {"argv": ["sh", "-c", f"{refuse}; {serve}"]}))
    assert record.failed is not None
    assert record.failed.hint == (f"Its last lines: no licence for {port + 1}. Its whole log is kept: server-2.log.")
    assert watched.kept["server-2.log"] == f"no licence for {port + 1}\n".encode()


def stat(number: int, name: str, ticks: int) -> str:
    """A line of /proc/PID/stat."""
    return f"{number} ({name}) S {'1 ' * 10}{ticks} 0 {'1 ' * 6}77 {' '.join('1' * 20)}\n"


def test_the_cpu_of_all_instances_is_added_up_and_threads_of_one_name_too() -> None:
    monitor = ThreadsMonitor()
    assert monitor.before((5, 9)).endswith("\n  watch 5 9")
    before = stat(5, "java", 100) + stat(5, "java", 40) + stat(6, "http", 60)
    before += stat(9, "java", 300) + stat(9, "java", 100) + stat(10, "http", 200)
    now = stat(5, "java", 150) + stat(5, "java", 50) + stat(6, "http", 100)
    now += stat(9, "java", 380) + stat(9, "java", 110) + stat(10, "http", 270)
    found = {channel.name: value for channel, value in monitor.samples(Reading(0, before), Reading(1, now)).items()}
    assert found["process.cpu_ratio"] == pytest.approx(1.3)
    assert found["threads.http.cpu_ratio"] == pytest.approx(1.1)
    assert found["threads.java.cpu_ratio"] == pytest.approx(0.2)
    assert (found["threads.http.count"], found["threads.java.count"]) == (2, 2)
