"""An editor tries texts that do harm in every field of every kind: they are refused, or they leave no mark."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from pydantic import ValidationError

from agents.base.command import Command
from agents.base.errors import PlanError
from agents.base.process_start import ProcessStart
from agents.base.rights import Guarded
from agents.drivers.base.driver import Driver, Target
from agents.drivers.jmeter.driver import Jmeter
from agents.drivers.wrk.wrk import Wrk
from agents.running.server_files import named_files
from agents.servers.base.server import Server
from agents.servers.tomcat.server import Tomcat
from agents.steps.base.remote_file import RemoteFileStep
from agents.steps.base.step import HostStep, LaunchStep, StepContext
from tests import needs
from tests.agents.drivers.jmeter_home import jmeter_home
from tests.agents.editor_samples import SAMPLES, changed, texts
from tests.agents.run_lab import free_port
from tests.agents.servers.tomcat_install import running, unpack_tomcat

TARGET = Target("http://127.0.0.1:9/")
TOOLS = (
    *("ab", "autocannon", "h2load", "hey", "k6", "oha", "siege", "vegeta", "wrk", "wrk2", "jmeter"),
    *("fio", "iperf3", "javac", "locust", "memtier_benchmark", "redis-benchmark", "sysbench"),
    *("haproxy", "nginx", "node", "redis-server", "postgres", "initdb", "psql", "pg_ctl", "pg_controldata", "pgbench"),
)
XML = "<Server><Service><Connector/><Engine><Host><Valve/></Host></Engine></Service></Server>"


Done = tuple[tuple[tuple[str, bytes], ...], tuple[tuple[str, str], ...]]
"""Commands as a shell gets them, one after the other, each with its input, and the files that they find."""


@dataclass(frozen=True)
class Place:
    """Where marks would be: `mark` is made by whatever is interpreted, `tool` is a program that makes it."""

    root: Path

    @property
    def mark(self) -> Path:
        return self.root / "mark"

    @property
    def tool(self) -> Path:
        return self.root / "tool.sh"

    def take_marks(self) -> int:
        """How many there are; they are removed."""
        found = list(self.root.glob("mark*"))
        for path in found:
            path.unlink()
        return len(found)


@dataclass(frozen=True)
class Tried:
    """One part of a document with a text in one of its fields. `saved` None: an editor cannot have it."""

    what: str
    kind: str
    field: str
    text: str
    saved: Guarded | None


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place(tmp_path / "place")
    made.root.mkdir(mode=0o755)
    made.tool.write_text(f"#!/bin/sh\ntouch {made.mark}\n")
    made.tool.chmod(0o755)
    return made


def walk(place: Place) -> Iterator[Tried]:
    for what, registry, samples in SAMPLES:
        for kind, model in registry.items():
            full = json.loads(model.model_validate(samples[kind]).model_dump_json(by_alias=True, exclude={"kind"}))
            for text in texts(str(place.mark), str(place.tool)):
                for field, body in changed(full, text, model.rights.data):
                    try:
                        part = model.model_validate(body)
                    except (ValidationError, PlanError):
                        yield Tried(what, kind, field, text, None)
                        continue
                    yield Tried(what, kind, field, text, None if part.reserved() else part)


def test_every_kind_has_a_sample() -> None:
    for _, registry, samples in SAMPLES:
        assert set(samples) == set(registry)


@pytest.mark.slow
def test_what_an_editor_gets_past_the_gate_leaves_no_mark(place: Place, tmp_path: Path) -> None:
    fields, tried, passed = set(), Counter[str](), 0
    parts: dict[tuple[str, ...], Guarded] = {}
    for one in walk(place):
        field = one.field.partition("{")[0]  # a text under many names is one text to the shell
        fields.add((one.what, one.kind, field))
        tried[one.what] += 1
        if one.saved is not None:
            passed += 1
            parts.setdefault((one.what, one.kind, field, one.text), one.saved)
    programs = _programs(tmp_path / "bin")
    marks, done = 0, set[Done]()
    for part in parts.values():
        _do(part, tmp_path / "host", programs, done)
        marks += place.take_marks()
    kinds = sum(len(registry) for _, registry, _ in SAMPLES)
    print(f"{kinds} kinds, {len(fields)} fields, {tried.total()} documents tried, {passed} saved, marks {marks}")
    assert marks == 0
    assert min(tried.values()) > 1000


@pytest.mark.slow
def test_the_real_programs_read_what_passed_and_leave_no_mark(place: Place, tmp_path: Path) -> None:
    """wrk, java and JMeter, each with all texts that passed, in as few starts as they fit into."""
    passed = [one for one in walk(place) if one.saved is not None]
    headers = {f"X-{n}": one.text for n, one in enumerate(passed) if (one.kind, one.field) == ("wrk", "headers.X-A")}
    assert headers
    if shutil.which("wrk"):
        _run(Wrk(connections=1, threads=1, headers=headers).command(TARGET, 1), tmp_path, os.environ)
    for one in passed:
        if isinstance(one.saved, LaunchStep):
            launch = one.saved.contribute(ProcessStart())
            _run(Command(("java", *launch.jvm_options, "-version")), tmp_path, {**os.environ, **launch.environment})
    home = jmeter_home()
    if home is not None:
        properties = {
            f"a{n}": one.text for n, one in enumerate(passed) if (one.kind, one.field) == ("jmeter", "properties.a")
        }
        bodies = [one.text for one in passed if (one.kind, one.field) == ("jmeter", "requests[].body")]
        requests = [{"label": f"l{n}", "method": "POST", "body": body} for n, body in enumerate(bodies)]
        tool = Jmeter.model_validate(
            {"home": home, "users": 1, "loops": 1, "requests": requests, "properties": properties}
        )
        assert {one.field for one in tool.reserved()} <= {"home"}
        for name, text in tool.files().items():
            (tmp_path / name).write_text(text)
        _run(tool.command(TARGET, 2), tmp_path, os.environ)
        assert (tmp_path / "results.jtl").exists()
    assert place.take_marks() == 0


@pytest.mark.slow
def test_a_real_tomcat_with_all_that_passed_leaves_no_mark(place: Place, tmp_path: Path) -> None:
    """Every configuration and page that an editor may write, in one instance that serves each page."""
    home, instance = unpack_tomcat(tmp_path), tmp_path / "instance"
    port = free_port()
    server = Tomcat(home=str(home), port=port)
    create = server.create_instance(str(instance))
    subprocess.run(create.argv, input=create.stdin, check=True, timeout=120)
    pages = 0
    for one in walk(place):
        step = one.saved
        if not isinstance(step, RemoteFileStep):
            continue
        if step.path.endswith(".html"):
            pages += 1
            step = step.model_copy(update={"path": f"webapps/ROOT/a{pages}.html"})
        _change(step, instance, os.environ)
    assert pages > 10
    environment = server.environment(str(instance), ProcessStart())
    with running(server.start_command(str(instance), ProcessStart()), environment, b"Server startup in"):
        for page in range(1, pages + 1):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/a{page}.html", timeout=30) as answer:
                assert answer.status == 200
    assert place.take_marks() == 0


def _plan(function: str) -> str:
    """The built-in plan with a function in place of the path that it requests."""
    return Jmeter(users=1, loops=1).plan_text().replace("${__P(benchhub.path)}", f"/{function}")


CONTROLS: Mapping[str, Callable[[Place, str | None], Driver]] = {
    "wrk": lambda place, _home: Wrk(connections=1, threads=1, script=f"os.execute('touch {place.mark}')"),
    "jmeter": lambda place, home: Jmeter(
        home=home or "", allow_shell=True, jmx=_plan(f"${{__groovy('touch {place.mark}'.execute())}}")
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("tool", CONTROLS)
def test_the_texts_do_harm_where_an_admin_lets_them(place: Place, tmp_path: Path, tool: str) -> None:
    """Without this the walk could find no mark because nothing ever makes one."""
    home = jmeter_home()
    if not (tool == "jmeter" and home):
        needs.require_program(tool)
    driver = CONTROLS[tool](place, home)
    assert driver.reserved()
    for name, text in driver.files().items():
        (tmp_path / name).write_text(text)
    _run(driver.command(TARGET, 2), tmp_path, os.environ)
    assert place.take_marks() == 1


def _programs(directory: Path) -> Path:
    """Load tools and servers as programs that do nothing, so that only the shell reads their arguments."""
    directory.mkdir()
    for name in TOOLS:
        (directory / name).write_text("#!/bin/sh\nexit 0\n")
        (directory / name).chmod(0o755)
    return directory


def _do(part: Guarded, directory: Path, programs: Path, done: set[Done]) -> None:
    """What a run does with the part in a new directory, as far as a shell and this machine's own programs read it.

    Commands that find the same files do what they did before: they are `done`.
    """
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    environment = {"PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(directory)}
    context = StepContext(str(directory), str(directory), str(directory))
    if isinstance(part, Driver):
        files = part.files()
        for name, text in files.items():
            (directory / name).write_text(text)
        try:
            commands = [part.version_command(), part.command(TARGET, 1), part.warming_up().command(TARGET, 1)]
        except PlanError:
            return
        for command in commands:
            _run_new([command], directory, environment, done, files)
    elif isinstance(part, LaunchStep):
        launch = part.contribute(ProcessStart())
        options = shlex.join(launch.jvm_options)
        text = f"true {options}; bash -c :; sh -c :"
        _run(Command(("bash", "-c", text)), directory, {**environment, **launch.environment})
    elif isinstance(part, RemoteFileStep):
        _change(part, directory, environment)
    elif isinstance(part, HostStep):
        _run_new([part.probe(context)], directory, environment, done, {})
    elif isinstance(part, Server):
        _run_new([part.version_command()], directory, environment, done, {})
        _run_new(_of_an_instance(part, str(directory / "instance")), directory, environment, done, {})


def _of_an_instance(server: Server, instance: str) -> list[Command]:
    """Its making, start and files; without the start of a real Java, while other programs do nothing here."""
    start = [] if server.is_jvm else [server.start_command(instance, ProcessStart())]
    return [server.create_instance(instance), *start, named_files(instance, server.keep_files)]


def _change(step: RemoteFileStep, instance: Path, environment: Mapping[str, str]) -> None:
    path, context = instance / step.path, StepContext(str(instance))
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(XML if path.suffix == ".xml" else "a=1\n")
    state = step.parse(subprocess.run(step.probe(context).argv, capture_output=True, check=True).stdout)
    try:
        commands = step.apply(context, state)
    except PlanError:  # the text is in a path that is in no document
        return
    for command in commands:
        _run(command, instance, environment)


def _run_new(
    commands: Sequence[Command],
    directory: Path,
    environment: Mapping[str, str],
    done: set[Done],
    files: Mapping[str, str],
) -> None:
    """Run them unless these, with the same words and input, were `done` among the same files."""
    key = (tuple((one.shell(), one.stdin) for one in commands), tuple(files.items()))
    if key not in done:
        done.add(key)
        for command in commands:
            _run(command, directory, environment)


def _run(command: Command, directory: Path, environment: Mapping[str, str]) -> None:
    """As a host does, where a program that is missing is an exit status."""
    subprocess.run(
        ["sh", "-c", command.shell()],
        cwd=directory,
        env=dict(environment),
        input=command.stdin,
        capture_output=True,
        timeout=60,
        check=False,
    )
