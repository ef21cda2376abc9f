"""Servers: their logs as text cases, and a real Tomcat and a real command server started from their commands."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from agents.base.command import Command
from agents.base.errors import ParseError, PlanError
from agents.base.process_start import ProcessStart
from agents.formats.jvm import options_value, parse_java_major
from agents.formats.xml_document import flatten
from agents.servers import SERVERS, AnyServer
from agents.servers.base.frames import FRAME, parse_frames
from agents.servers.base.process import parse_process
from agents.servers.base.server import Readiness, Server
from agents.servers.command import CommandServer
from agents.servers.tomcat.scripts import PORTS
from agents.servers.tomcat.server import Tomcat
from tests import needs
from tests.agents.run_lab import free_port
from tests.agents.servers.tomcat_install import own_address, running, tree_hash, unpack_tomcat
from tests.listening import listening

SERVER: TypeAdapter[Server] = TypeAdapter(AnyServer)
LOGS = sorted((Path(__file__).parents[1] / "cases" / "servers").glob("*.log"))
SERVLET = "/examples/servlets/servlet/HelloWorldExample"
HOSTILE = [
    "; touch PWNED",
    "$(touch PWNED)",
    "`touch PWNED`",
    "'; touch PWNED; '",
    '"; touch PWNED; "',
    " x  y ",
    "\\",
    "*",
]


def run(command: Command, cwd: Path | None = None) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command.argv, input=command.stdin, capture_output=True, timeout=300, check=False, cwd=cwd)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack_tomcat(tmp_path_factory.mktemp("tomcat"))


def test_every_registered_server_has_its_kind() -> None:
    assert all(server.model_fields["kind"].default == kind for kind, server in SERVERS.items())


@pytest.mark.parametrize("log", LOGS, ids=lambda path: path.stem)
def test_a_log_tells_which_settings_were_not_taken(log: Path) -> None:
    kind = log.stem.partition("-")[0]
    options: dict[str, dict[str, Any]] = {
        "command": {"argv": ["java", "-version"]},
        "jar": {"jar": "/a.jar"},
        "node": {"entry": "/a.js"},
        "python": {"application": "a:b", "directory": "/a"},
        "liberty": {"home": "/wlp"},
        "tomcat": {"home": "/tomcat"},
    }
    server = SERVER.validate_python({"kind": kind, **options.get(kind, {})})
    assert list(server.problems(log.read_text())) == json.loads(log.with_suffix(".json").read_text())["problems"]


def test_a_real_tomcat_runs_in_its_own_instance_and_leaves_the_installation_alone(home: Path, tmp_path: Path) -> None:
    before = tree_hash(home)
    server = Tomcat(home=str(home), port=free_port(), open_examples=True, jvm_options=("-Xmx128m", "-XX:+UseSerialGC"))
    instance = str(tmp_path / "runs" / "1" / "instance")
    assert re.fullmatch(r"\d+\.\d+\.\d+", server.parse_version(run(server.version_command()).stdout))
    created = run(server.create_instance(instance))
    assert created.returncode == 0, created.stderr
    assert run(server.create_instance(instance)).returncode != 0, "an instance is never made over another"
    hostile = tuple(f"-Dhostile.{number}={text}" for number, text in enumerate(HOSTILE))
    launch = ProcessStart(environment={"MALLOC_ARENA_MAX": "2", "SECRET": "x"}, jvm_options=hostile)
    start = server.start_command(instance, launch)
    with running(start, server.environment(instance, launch), b"Server startup in") as (pid, lines):
        java = Path(os.readlink(f"/proc/{pid}/exe"))
        assert java.name == "java", "the job's process is Java itself"
        for address in filter(None, ("127.0.0.1", "127.0.0.2", own_address())):
            with urllib.request.urlopen(f"http://{address}:{server.port}{SERVLET}", timeout=300) as answer:
                assert answer.status == 200
                assert b"Hello World" in answer.read()
        effective = server.parse_effective(run(server.effective_command(instance, pid)).stdout)
        assert server.problems(b"".join(lines).decode()) == ()
    assert effective["tomcat.server_xml.Server@port"] == "-1"
    assert effective["tomcat.server_xml.Server/Service/Connector@port"] == str(server.port)
    assert effective["tomcat.contexts.examples.Context@docBase"] == f"{home}/webapps/examples"
    assert effective["process.limits.nofile"].isdigit()
    assert effective["process.cpus"]
    assert effective["process.environment.MALLOC_ARENA_MAX"] == "2"
    assert "process.environment.SECRET" not in effective
    assert f"-Dcatalina.base={instance}" in effective.values()
    assert effective["jvm.version"]
    if java.with_name("jcmd").exists():  # a runtime without development tools has none to ask
        assert effective["jvm.flags.MaxHeapSize"] == str(128 * 1024 * 1024)
        assert effective["jvm.flags.UseSerialGC"] == "true"
        assert all(option in effective["jvm.arguments"] for option in hostile)
    assert not list(tmp_path.rglob("PWNED"))
    assert not Path("PWNED").exists()
    assert tree_hash(home) == before


@pytest.mark.parametrize("listen", ["127.0.0.2", ""])
def test_a_real_tomcat_listens_where_the_load_goes_and_nowhere_else(home: Path, tmp_path: Path, listen: str) -> None:
    server = Tomcat(home=str(home), port=free_port(), jvm_options=("-Xmx128m",)).instance(0, listen)
    instance = str(tmp_path / "instance")
    created = run(server.create_instance(instance))
    assert created.returncode == 0, created.stderr
    launch = ProcessStart()
    start = server.start_command(instance, launch)
    with running(start, server.environment(instance, launch), b"Server startup in") as (pid, _):
        assert {address for address, _ in listening({pid})} <= ({listen} if listen else {"::", "0.0.0.0"})
        assert {port for _, port in listening({pid})} == {server.port}


def test_web_applications_are_copied_and_a_missing_one_is_named(home: Path, tmp_path: Path) -> None:
    war = tmp_path / "people.war"
    war.write_bytes(b"PK")
    server = Tomcat(home=str(home), webapps=("ROOT", "docs", str(war)))
    assert run(server.create_instance(str(tmp_path / "a"))).returncode == 0
    assert sorted(p.name for p in (tmp_path / "a/webapps").iterdir()) == ["ROOT", "docs", "people.war"]
    assert not (tmp_path / "a/conf/Catalina").exists()
    failed = run(Tomcat(home=str(home), webapps=("shop",)).create_instance(str(tmp_path / "b")))
    assert failed.returncode != 0
    assert b"there is no web application shop" in failed.stderr


def test_a_missing_installation_or_java_is_named(home: Path, tmp_path: Path) -> None:
    missing = run(Tomcat(home=str(tmp_path / "nothing")).version_command())
    assert missing.returncode != 0
    assert b"there is no Tomcat at" in missing.stderr
    no_java = run(Tomcat(home=str(home), java_home=str(tmp_path)).version_command())
    assert no_java.returncode != 0
    assert b"install Java 17 or later" in no_java.stderr


def as_a_plain_login(command: Command) -> str:
    """What the command says on standard error to somebody who is not root."""
    drop = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups") if os.geteuid() == 0 else ()
    return subprocess.run((*drop, *command.argv), capture_output=True, text=True, timeout=60, check=False).stderr


@pytest.mark.parametrize(("closed", "mode"), [("conf/server.xml", 0o600), ("lib", 0o700), ("", 0o700)])
def test_a_tomcat_that_the_login_may_not_read_is_not_told_to_be_missing(
    home: Path, tmp_path: Path, closed: str, mode: int
) -> None:
    if os.geteuid() != 0:
        mode &= ~0o400 & ~0o100 & 0o777  # its own files: only who may not read them himself sees the difference
    place = Path(tempfile.mkdtemp(dir="/var/tmp"))
    try:
        place.chmod(0o755)
        shutil.copytree(home, place / "tomcat")
        for path in (place / "tomcat").rglob("*"):
            path.chmod(0o755)
        (place / "tomcat" / closed).chmod(mode)
        said = as_a_plain_login(Tomcat(home=str(place / "tomcat")).version_command())
        (place / "tomcat" / closed).chmod(0o755)
    finally:
        shutil.rmtree(place)
    assert f"may not read {place}/tomcat{'/' if closed else ''}{closed} of the Tomcat" in said
    assert f"sudo chmod -R a+rX {place}/tomcat" in said


def test_a_tomcat_that_a_package_keeps_in_pieces_is_named(home: Path, tmp_path: Path) -> None:
    pieces = tmp_path / "pieces"
    shutil.copytree(home, pieces, ignore=shutil.ignore_patterns("conf"))
    assert b"has no conf beside it" in run(Tomcat(home=str(pieces)).version_command()).stderr


def test_the_version_is_read_and_a_java_that_is_too_old_is_refused() -> None:
    server = Tomcat(home="/opt/tomcat")
    java = b'openjdk version "17.0.15" 2025-04-15\n'
    assert server.parse_version(java + b"Server version: Apache Tomcat/11.0.9\nServer number:  11.0.9.0\n") == "11.0.9"
    old = b'java version "1.8.0_402"\nException java.lang.UnsupportedClassVersionError: org/apache/catalina/...'
    with pytest.raises(PlanError, match="needs a later Java than 8"):
        server.parse_version(old)
    with pytest.raises(ParseError):
        server.parse_version(java)
    assert parse_java_major('openjdk version "21" 2023-09-19') == 21


PLAIN = "<Connector port='1'/><Connector port='2'/>"
ODD = """<Server\r\n a='>' port = '8005'><!-- <Connector port='5'/> > -->
<Connector
\tx='a>"b' redirectPort='8443'
\tport="1"/></Server>"""


@pytest.mark.parametrize(
    "text, expected",
    [
        (f"<Server port='8005'>{PLAIN}</Server>", ["-1", "99", "2"]),
        ("<Server><Connector/></Server>", ["-1", "99"]),
        (ODD, ["-1", "99"]),
        (f"<Server><Connector protocol='AJP/1.3' port='7'/>{PLAIN}</Server>", ["-1", "7", "99", "2"]),
        (f"<Server><Connector port='7' SSLEnabled = 'true'/>{PLAIN}</Server>", ["-1", "7", "99", "2"]),
        ("<Server><Connector port='1' protocol='AJP/1.3'/></Server>", None),
        ("<Server><!-- <Connector port='1'/> --></Server>", None),
        ("<Server><!-- <Connector port='1'/>", None),
        ("", None),
    ],
)
def test_the_ports_of_any_server_xml_are_set_or_the_instance_is_refused(text: str, expected: list[str] | None) -> None:
    done = subprocess.run(["awk", "-v", "port=99", PORTS], input=text.encode(), capture_output=True, check=False)
    assert (done.returncode == 0) == (expected is not None)
    if expected is not None:
        flat = flatten(done.stdout)
        assert [value for path, value in flat.items() if path.endswith("@port")] == expected


def test_a_command_server_runs_in_its_directory_with_its_files(tmp_path: Path) -> None:
    port = free_port()
    content = "".join(f"{text}\n" for text in HOSTILE)
    server = CommandServer(
        argv=(sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1", "--directory", "www files"),
        files={"www files/index.html": content, "empty": ""},
        version=(sys.executable, "--version"),
        port=port,
    )
    instance = str(tmp_path / "run" / "an instance")
    assert server.parse_version(run(server.version_command()).stdout).startswith("Python 3")
    created = run(server.create_instance(instance), cwd=tmp_path)
    assert created.returncode == 0, created.stderr
    start = server.start_command(instance, ProcessStart())
    environment = server.environment(instance, ProcessStart(environment={"PYTHONUNBUFFERED": "1"}))
    with running(start, environment, b"Serving HTTP") as (pid, _):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=300) as answer:
            assert answer.read().decode() == content
        effective = server.parse_effective(run(server.effective_command(instance, pid)).stdout)
    assert effective["files.www files/index.html"] == content
    assert effective["files.empty"] == ""
    assert effective["process.arguments[1]"] == "-m"
    assert effective["process.environment.PYTHONUNBUFFERED"] == "1"
    assert not list(tmp_path.rglob("PWNED"))


def test_the_version_of_a_command_server_is_its_program_unless_it_tells_one() -> None:
    server = CommandServer(argv=("sh", "-c", "exit 1"))
    assert server.parse_version(run(server.version_command()).stdout).endswith("sh")
    missing = run(CommandServer(argv=("no-such-server",), version=("no-such-server", "-v")).version_command())
    assert b"there is no program no-such-server" in missing.stderr
    assert missing.returncode != 0


def test_jvm_options_reach_only_programs_that_read_them() -> None:
    launch = ProcessStart(jvm_options=("-Da=b c", "-Xmx1g"))
    assert CommandServer(argv=("/usr/bin/java", "-jar", "a.jar")).environment("/i", launch) == {
        "JDK_JAVA_OPTIONS": "'-Da=b c' -Xmx1g"
    }
    with pytest.raises(PlanError, match="no effect on nginx"):
        CommandServer(argv=("nginx",)).environment("/i", launch)


@pytest.mark.parametrize(
    "name", ["CATALINA_OPTS", "JAVA_OPTS", "JAVA_HOME", "CATALINA_BASE", "JDK_JAVA_OPTIONS", "_RUNJAVA"]
)
def test_variables_that_catalina_sh_would_evaluate_are_refused(name: str) -> None:
    with pytest.raises(PlanError, match=name):
        Tomcat(home="/opt/t").environment("/i", ProcessStart(environment={name: "$(reboot)"}))


def test_a_jvm_takes_every_option_as_it_is_written(tmp_path: Path) -> None:
    options = tuple(f"-Dx{number}={text}" for number, text in enumerate(HOSTILE))
    environment = {"PATH": os.environ["PATH"], "JDK_JAVA_OPTIONS": options_value(options)}
    command = ["java", "-XshowSettings:properties", "-version"]
    needs.require_program("java")
    done = subprocess.run(command, env=environment, capture_output=True, check=False, cwd=tmp_path)
    for number, text in enumerate(HOSTILE):
        assert f" x{number} = {text.rstrip()}" in done.stderr.decode()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "raw",
    [
        {"kind": "tomcat", "home": "relative"},
        {"kind": "tomcat", "home": "/opt/../etc"},
        {"kind": "tomcat", "home": "/opt/$(reboot)"},
        {"kind": "tomcat", "home": "/opt/a b"},
        {"kind": "tomcat", "home": '/opt/"'},
        {"kind": "tomcat", "home": "/opt/t\n/x"},
        {"kind": "tomcat", "home": "/opt/t", "java_home": "/opt/`id`"},
        {"kind": "tomcat", "home": "/opt/t", "webapps": ["../x"]},
        {"kind": "tomcat", "home": "/opt/t", "webapps": ["-rf"]},
        {"kind": "tomcat", "home": "/opt/t", "webapps": ["/a/../b"]},
        {"kind": "tomcat", "home": "/opt/t", "webapps": ["examples"]},
        {"kind": "tomcat", "home": "/opt/t", "webapps": ["manager"]},
        {"kind": "tomcat", "home": "/opt/t", "jvm_options": ["Xmx1g"]},
        {"kind": "tomcat", "home": "/opt/t", "jvm_options": ["-Da=\n-Db"]},
        {"kind": "tomcat", "home": "/opt/t", "port": 0},
        {"kind": "tomcat", "home": "/opt/t", "ready": {"log_pattern": "("}},
        {"kind": "command", "argv": []},
        {"kind": "command", "argv": ["-x"]},
        {"kind": "command", "argv": ["a\0b"]},
        {"kind": "command", "argv": ["a"], "files": {"../x": ""}},
        {"kind": "command", "argv": ["a"], "files": {"/x": ""}},
        {"kind": "command", "argv": ["a"], "version": ["-x"]},
        {"kind": "liberty"},
    ],
)
def test_a_server_that_makes_no_sense_is_refused(raw: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        SERVER.validate_python(raw)


@pytest.mark.parametrize(
    ("kind", "ready", "probe"),
    [
        ("postgresql", {"timeout_s": 90}, "tcp"),
        ("redis", {"log_pattern": "Ready"}, "tcp"),
        ("redis", {"path": "/up"}, "http"),
        ("nginx", {"timeout_s": 90}, "http"),
    ],
)
def test_who_changes_only_the_time_to_be_ready_leaves_what_is_asked(
    kind: str, ready: dict[str, Any], probe: str
) -> None:
    assert SERVER.validate_python({"kind": kind, "ready": ready}).ready.probe == probe


def test_a_readiness_pattern_is_a_regular_expression() -> None:
    assert Readiness(log_pattern=r"CWWKF0011I|Server startup in").log_pattern
    with pytest.raises(ValidationError, match="not a regular expression"):
        Readiness(log_pattern="[")


def test_frames_carry_any_content_and_refuse_what_is_no_frame() -> None:
    done = subprocess.run(
        ["sh", "-c", f"{FRAME} printf 'a\\0b\\nname eA==\\n' | frame one; : | frame two"], capture_output=True
    )
    assert parse_frames(done.stdout) == {"one": b"a\0b\nname eA==\n", "two": b""}
    with pytest.raises(ParseError) as error:
        parse_frames(b"one eA==\nWarning: not base64\n")
    assert error.value.line == 2


def test_a_process_is_described_from_its_proc_files() -> None:
    frames = {
        "process.limits": b"Limit                     Soft Limit           Hard Limit           Units\n"
        b"Max open files            1024                 unlimited            files     \n",
        "process.status": b"Threads:\t42\nCpus_allowed_list:\t2-3\n",
        "process.cmdline": b"java\0-Da=b c\0\0",
        "process.environ": b"JAVA_HOME=/j\0TOKEN=secret\0",
        "jvm.VM.flags": b"7:\n-XX:CICompilerCount=2 -XX:+UseG1GC -XX:-UseNUMA \n",
        "jvm.VM.version": b"7:\nOpenJDK 64-Bit Server VM version 17.0.15+6\nJDK 17.0.15\n",
    }
    assert parse_process(frames) == {
        "process.limits.nofile": "1024",
        "process.limits.nofile_hard": "unlimited",
        "process.threads": "42",
        "process.cpus": "2-3",
        "process.arguments[0]": "java",
        "process.arguments[1]": "-Da=b c",
        "process.arguments[2]": "",
        "process.environment.JAVA_HOME": "/j",
        "jvm.flags.CICompilerCount": "2",
        "jvm.flags.UseG1GC": "true",
        "jvm.flags.UseNUMA": "false",
        "jvm.name": "OpenJDK 64-Bit Server VM",
        "jvm.version": "17.0.15+6",
    }
    assert parse_process({}) == {}


def test_the_path_of_a_program_that_a_build_puts_into_the_instance_stands_for_its_version() -> None:
    server = CommandServer(argv=("./app", "8080"), port=8080)
    assert server.parse_version(run(server.version_command()).stdout) == "./app"
    assert run(CommandServer(argv=("no-such-server",), port=8080).version_command()).returncode != 0
