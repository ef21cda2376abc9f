"""Profilers without a host: how they are named and chosen, what they print, and what is made of it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from agents.base.errors import ParseError
from agents.base.process_start import ProcessStart
from agents.base.runtime import Runtime
from agents.events import LoadStarted
from agents.fingerprint import fingerprint
from agents.plan import build_plan
from agents.profilers import PROFILERS
from agents.profilers.base.profiler import Profiler
from agents.profilers.base.window import TOO_SHORT_STATUS, parse_window, window_command
from agents.profilers.choosing import CHOICES, why_not
from agents.profilers.topdown import figures_of, read_counts
from agents.running.common_start import _UPTIME
from agents.running.profile_parts import read_parts
from agents.running.profiling import margin_of, requests_in
from agents.spec import RunSpec
from tests.agents.recorded import CASES
from tests.agents.specs import make_spec

JVM, NGINX, PYTHON, COMMAND = ("tomcat", "jvm"), ("nginx", ""), ("python", "python"), ("command", "")
COUNTED = (CASES / "topdown" / "perf-stat.txt").read_text()


def spec_with(*profilers: str, **server: Any) -> RunSpec:
    spec = make_spec(server={"kind": "tomcat", "home": "/opt/tomcat", **server})
    return RunSpec.model_validate({**spec.model_dump(mode="json"), "profilers": profilers})


@pytest.mark.parametrize(
    "names, servers, words",
    [
        (("async-profiler", "topdown"), [JVM], ""),
        (("async-profiler", "async-profiler:alloc"), [JVM], "would measure each other"),
        (("async-profiler:alloc", "perf"), [JVM], ""),
        (("jfr", "perf"), [JVM], "jfr and perf would measure each other on one server"),
        (("async-profiler", "py-spy"), [JVM, PYTHON], ""),
        (("async-profiler", "perf"), [JVM, NGINX], "would measure each other"),
        (("node",), [("command", "node")], ""),
        (
            ("py-spy",),
            [COMMAND],
            "this application has none (command). Of a command it is known",
        ),
        (("node",), [JVM, NGINX], "node profiles Node.js, and this application has none (tomcat, nginx)"),
    ],
)
def test_profilers_must_fit_the_servers_and_each_other(
    names: tuple[str, ...], servers: list[tuple[str, Runtime]], words: str
) -> None:
    said = why_not(names, servers)
    assert words in said
    assert bool(said) is bool(words)


@pytest.mark.parametrize(
    "program, fitting",
    [
        ("java", "async-profiler"),
        ("/opt/jdk/bin/java", "jfr"),
        ("node", "node"),
        ("/usr/bin/python3.11", "py-spy"),
        ("/srv/venv/bin/gunicorn", "py-spy"),
        ("./run.sh", ""),
        ("javac", ""),
    ],
)
def test_the_program_of_a_command_says_which_profilers_fit_it(program: str, fitting: str) -> None:
    spec = make_spec(server={"kind": "command", "argv": [program, "--port={port}"]}).model_dump(mode="json")
    for name in ("async-profiler", "jfr", "node", "py-spy"):
        fits = bool(fitting) and CHOICES[name].profiler.of == CHOICES[fitting].profiler.of
        if fits:
            assert RunSpec.model_validate({**spec, "profilers": [name]}).parts[0].profilers[0].name == name
        else:
            with pytest.raises(ValidationError, match=r"where its first word is java|profiles .*\. Leave it out"):
                RunSpec.model_validate({**spec, "profilers": [name]})


def test_a_run_that_cannot_be_profiled_is_no_run() -> None:
    with pytest.raises(ValidationError, match="profilers: py-spy profiles Python servers"):
        spec_with("py-spy")
    with pytest.raises(ValidationError, match="async-profiler:wall"):
        spec_with("gdb")
    assert spec_with("jfr", "jfr").profilers == ("jfr",)


def test_profiled_runs_have_a_fingerprint_of_their_own_and_others_keep_theirs() -> None:
    known: dict[str, Any] = {"driver_version": "4.2.0", "profile_digest": "a" * 64}
    plain, one, other = spec_with(), spec_with("jfr", "topdown"), spec_with("topdown", "jfr")
    assert "profilers" not in plain.model_dump(mode="json")
    assert "profilers" not in plain.model_dump(mode="json")["workload"]
    assert fingerprint(one, **known) == fingerprint(other, **known)
    assert len({fingerprint(spec, **known) for spec in (plain, one, spec_with("jfr"))}) == 3


def test_the_plan_says_what_profiles_the_server_and_when() -> None:
    (measure,) = [phase for phase in build_plan(spec_with("async-profiler:lock")).phases if phase.name == "measure"]
    assert "Profile sut with async-profiler:lock, from 0.5 s after" in " ".join(item.title for item in measure.items)


@pytest.mark.parametrize("name", CHOICES)
def test_a_servers_own_options_stay_when_it_is_profiled(name: str) -> None:
    given = ProcessStart(environment={"NODE_OPTIONS": "--no-deprecation"}, jvm_options=("-Xmx1g",))
    made = CHOICES[name].profiler.prepared(given, "/run/a place", CHOICES[name].event)
    assert made.jvm_options[:1] == ("-Xmx1g",)
    assert made.environment["NODE_OPTIONS"].startswith("--no-deprecation")


def test_counters_become_ratios_and_rates_and_what_is_not_counted_is_absent() -> None:
    figures = figures_of(read_counts(COUNTED))
    assert figures["instructions_per_cycle"] == 1.5
    assert figures["retiring_ratio"] == 0.4
    assert figures["frontend_bound_ratio"] == 0.3
    assert figures["context_switches_per_cpu_s"] == pytest.approx(2031 / 0.81253)
    assert "branch_misses_ratio" not in figures
    with pytest.raises(ParseError):
        read_counts("perf: command not found")


NOTHING = "#!/bin/sh\nexit 0\n"
OPENJ9 = "#!/bin/sh\necho 'Eclipse OpenJ9 VM (build openj9-0.49.0, JRE 17 Linux amd64-64-Bit)' >&2\n"
LACKS = [
    ("async-profiler", {"java": OPENJ9, "uname": "#!/bin/sh\necho x86_64\n"}, "its JVM is Eclipse OpenJ9"),
    ("jfr", {"java": OPENJ9, "jcmd": NOTHING}, "with HotSpot alone|Take perf"),
    ("async-profiler", {"uname": "#!/bin/sh\necho riscv64\n"}, "no library for riscv64|Take the profiler jfr or perf."),
    ("async-profiler", {"uname": "#!/bin/sh\necho aarch64\n"}, ""),
    ("jfr", {"java": NOTHING}, "there is no jcmd, which a JRE does not have|"),
    ("jfr", {"java": NOTHING}, "apt-get install default-jdk-headless"),
    ("jfr", {"java": NOTHING, "jcmd": NOTHING}, ""),
    ("node", {}, ""),
    ("perf", {}, "there is no perf|Install it there as root: apt-get install linux-perf"),
    ("perf", {"perf": "#!/bin/sh\nexit 255\n"}, "use perf|Set kernel.perf_event_paranoid to 1 there"),
    ("perf", {"perf": NOTHING}, ""),
    ("topdown", {}, "there is no perf|Install it there as root: apt-get install linux-perf"),
    ("topdown", {"perf": NOTHING}, ""),
    ("py-spy", {}, "there is no py-spy|Install it there: pip install py-spy"),
    ("py-spy", {"py-spy": NOTHING, "id": "#!/bin/sh\necho 0\n"}, ""),
]


@pytest.mark.parametrize("name, programs, words", LACKS)
def test_what_a_host_lacks_is_said_with_what_to_install(
    name: str, programs: dict[str, str], words: str, tmp_path: Path
) -> None:
    for tool in ("cat", "id", "readlink", "sh"):
        tmp_path.joinpath(tool).symlink_to(str(shutil.which(tool)))
    for program, text in programs.items():
        tmp_path.joinpath(program).unlink(missing_ok=True)
        tmp_path.joinpath(program).write_text(text)
        tmp_path.joinpath(program).chmod(0o755)
    asked = re.sub("(:/usr/local|:/usr|:)/sbin|/usr/local/bin", "", PROFILERS[name].lacks(""))
    environment = {"PATH": str(tmp_path), "HOME": str(tmp_path)}
    done = subprocess.run(["/bin/sh", "-c", f"beside=\n{asked}"], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert words in done.stdout
    assert bool(done.stdout) is bool(words)


def test_every_profiler_has_been_asked_what_a_host_may_lack() -> None:
    assert {name for name, _, _ in LACKS} == set(PROFILERS)


class Idle(Profiler):
    """Does nothing but wait."""

    kind = title = of = cost = "idle"

    def fits(self, runtime: Runtime) -> bool:
        return True


def test_the_window_says_what_a_server_and_all_that_it_started_used(tmp_path: Path) -> None:
    busy = "( while :; do :; done ) & sleep 60"
    with subprocess.Popen(["sh", "-c", busy], start_new_session=True) as server:
        try:
            now_s = float(subprocess.run(["sh", "-c", _UPTIME], capture_output=True, check=True).stdout)
            command = window_command(Idle(), "cpu", str(tmp_path), "idle", until_s=now_s + 2, pids=(server.pid,))
            done = subprocess.run(command.argv, capture_output=True, text=True, check=True)
        finally:
            os.killpg(server.pid, 9)
    window = parse_window(done.stdout)
    assert window.engine == "idle"
    assert now_s <= window.begin_s < window.end_s
    assert 0 < window.cpu_time_s <= (window.end_s - window.begin_s) * 1.5 + 0.1


def test_a_window_without_time_is_none(tmp_path: Path) -> None:
    command = window_command(Idle(), "cpu", str(tmp_path), "idle", until_s=0, pids=(os.getpid(),))
    assert subprocess.run(command.argv, capture_output=True, check=False).returncode == TOO_SHORT_STATUS
    with pytest.raises(ParseError, match="did not say"):
        parse_window("engine idle\nusage 100 5\n")


@pytest.mark.parametrize("load_s, margin_s", [(1, 0.5), (10, 1.0), (30, 3.0), (600, 5.0)])
def test_the_window_leaves_out_how_the_load_begins_and_ends(load_s: int, margin_s: float) -> None:
    assert margin_of(load_s) == margin_s


def test_requests_of_the_window_are_counted_where_the_tool_tells_their_course() -> None:
    load = LoadStarted(1, measured=True, duration_s=10, at_unix_s=1000.0)
    course = {"step_s": 1.0, "ended_unix_s": [1000.0 + n for n in range(10)], "requests": [100] * 5 + [200] * 5}
    assert requests_in({"course": course}, load, 4.5, 6.0) == 50 + 200
    assert requests_in({"course": course}, load, 4.5, 6.0, clock_offset_s=1.0) == 300
    assert requests_in({"requests": 1000, "duration_s": 10.0}, load, 1.0, 9.0) == 800
    assert requests_in({"bytes": 5}, load, 1.0, 9.0) is None


def test_the_parts_of_several_processes_are_one_profile(tmp_path: Path) -> None:
    texts = ("a;b 3\n", "a;c 2\n", "")
    files = [tmp_path / str(number) for number in range(3)]
    for file, text in zip(files, texts, strict=True):
        file.write_text(text)
    parts = read_parts(files)
    assert (parts.form, parts.samples, parts.lost_samples) == ("collapsed", 5, None)
    with pytest.raises(ParseError, match="no sample"):
        read_parts(files[2:])


def test_every_choice_is_named_by_its_kind_and_what_it_samples() -> None:
    assert set(PROFILERS) <= set(CHOICES)
    assert all(name == one.profiler.kind or name.endswith(f":{one.event}") for name, one in CHOICES.items())
