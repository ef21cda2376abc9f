"""Liberty: what it is given, what it says, and a real one started as a job on a host."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from agents.base.command import Command
from agents.base.errors import ParseError, PlanError
from agents.base.process_start import ProcessStart
from agents.formats.xml_document import flatten
from agents.remote.jobs import Job
from agents.remote.ssh import SshSession
from agents.running.readiness import wait_until_ready
from agents.servers.liberty.server import Liberty
from agents.steps.base.step import StepContext
from agents.steps.jvm_options import JvmOptionsStep
from agents.steps.xml_edit.edits import SetAttributes
from agents.steps.xml_edit.step import XmlEditStep
from tests import needs
from tests.agents.remote.job_ends import COOKIE
from tests.agents.run_lab import free_port
from tests.agents.servers.tomcat_install import tree_hash

ARCHIVE = Path(
    os.environ.get("BENCHHUB_LIBERTY_ARCHIVE")
    or Path.home() / ".m2/repository/io/openliberty/openliberty-runtime/25.0.0.6/openliberty-runtime-25.0.0.6.zip"
)
CASES = Path(__file__).parents[1] / "cases" / "servers"
VERSION = (
    b'openjdk version "17.0.15" 2025-04-15\n'
    b"Open Liberty 25.0.0.6 (1.0.102.cl250620250602-1102) on OpenJDK 64-Bit Server VM, version 17.0.15+6 (en_US)\n"
)
HOSTILE = (
    "-Dhostile.1=$(touch PWNED)",
    "-Dhostile.2=`touch PWNED`",
    "-Dhostile.3='; touch PWNED; '",
    '-Dhostile.4=" *',
)


def run(command: Command) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command.argv, input=command.stdin, capture_output=True, timeout=300, check=False)


def named(name: str, directory: Path) -> list[Path]:
    return list(directory.rglob(name))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The unpacked installation, hundreds of MB of it: removed again."""
    how = "bin/lab liberty-baseline fetches it; BENCHHUB_LIBERTY_ARCHIVE names another place"
    needs.require(ARCHIVE.is_file(), f"the Liberty archive {ARCHIVE.name}", how)
    needs.require_program("java", "unzip")
    directory = tmp_path_factory.mktemp("liberty")
    subprocess.run(["unzip", "-q", str(ARCHIVE), "-d", str(directory)], check=True)
    yield directory / "wlp"
    shutil.rmtree(directory)


async def test_a_real_liberty_runs_in_its_own_user_directory_and_leaves_the_installation_alone(
    home: Path, session: SshSession, tmp_path: Path
) -> None:
    before = tree_hash(home)
    war = tmp_path / "shop.war"
    war.mkdir()
    (war / "index.html").write_text("the shop is open\n")
    server = Liberty(
        home=str(home),
        name="shop",
        port=free_port(),
        apps={"/shop": str(war)},
        dropins={"hello.war/index.html": "hello\n"},
        jvm_options=("-Xmx256m", "-Xmx192m"),
        bootstrap={"threads.most": "32"},
    )
    instance = str(tmp_path / "run" / "instance")
    said = await session.run(server.version_command())
    assert re.fullmatch(r"\d+\.\d+\.\d+\.\d+", server.parse_version(said.stdout))
    (await session.run(server.create_instance(instance))).check("creating the instance")
    edit = XmlEditStep(
        path="usr/servers/shop/server.xml",
        edits=(SetAttributes(op="set", select="server/httpEndpoint", attributes={"host": "127.0.0.1"}),),
    )
    context = StepContext(instance)
    state = edit.parse((await session.run(edit.probe(context))).stdout)
    for command in edit.apply(context, state):
        (await session.run(command)).check("editing server.xml")
    launch = ProcessStart(environment={"MALLOC_ARENA_MAX": "2"}, jvm_options=("-XX:+UseSerialGC", *HOSTILE))
    log = server.log_path(instance) or ""
    job = Job(session, str(tmp_path / "run" / "jobs" / "server"))
    started = await job.start(
        server.start_command(instance, launch),
        cookie=COOKIE,
        environment=server.environment(instance, launch),
        cwd=instance,
    )

    async def read_log() -> str:
        return (await session.run(Command(("tail", "-c", "262144", "--", log)))).text

    async def ask() -> str:
        return ""

    try:
        for path, text in (("/shop/index.html", "the shop is open"), ("/hello/", "hello")):
            ready = server.ready.model_copy(update={"path": path, "body_contains": text, "timeout_s": 150})
            url = f"http://127.0.0.1:{server.port}{path}"
            await wait_until_ready(
                ready,
                url,
                driver=session,
                server=job,
                log_file="server.log",
                read_log=read_log,
                ask=ask,
                check=lambda: None,
            )
        assert started.pid is not None
        result = await session.run(server.effective_command(instance, started.pid), max_output_bytes=4 << 20)
        assert os.readlink(f"/proc/{started.pid}/exe").endswith("/java"), "the job's process is Java itself"
    finally:
        await job.kill(cookie=COOKIE)
    effective = server.parse_effective(result.check("reading").stdout)
    assert server.problems(await read_log()) == ()
    assert effective["server.liberty.server_xml.server/featureManager/feature"] == "servlet-6.0"
    assert effective["server.liberty.server_xml.server/httpEndpoint@host"] == "127.0.0.1"
    assert effective["server.liberty.config_dropins/overrides/ports.server/httpEndpoint@httpPort"] == str(server.port)
    assert effective["server.liberty.bootstrap_properties.threads.most"] == "32"
    gc_log = f"-Xlog:gc*,safepoint:file={instance}/logs/gc.log:utctime,level,tags:filecount=2,filesize=32m"
    options = [gc_log, "-Xmx256m", "-Xmx192m", "-XX:+UseSerialGC", *HOSTILE]
    assert [effective[f"jvm.arguments.jvm_options[{number}]"] for number in range(len(options))] == options
    arguments = [value for path, value in effective.items() if path.startswith("process.arguments[")]
    assert [argument for argument in arguments if argument in options] == options
    assert effective["process.environment.WLP_USER_DIR"] == f"{instance}/usr"
    assert effective["process.environment.MALLOC_ARENA_MAX"] == "2"
    if "jvm.flags.MaxHeapSize" in effective:
        assert effective["jvm.flags.MaxHeapSize"] == str(192 * 1024 * 1024)
        assert effective["jvm.flags.UseSerialGC"] == "true"
    assert not named("PWNED", tmp_path)
    assert tree_hash(home) == before


def test_the_files_of_an_instance_are_made_from_the_application(tmp_path: Path) -> None:
    server = Liberty(
        home="/opt/wlp",
        port=9443,
        tls=True,
        features=("servlet-6.0", "concurrent-3.0"),
        apps={"/": "/srv/shop.war"},
        jvm_options=("-Xmx1g",),
        bootstrap={"a.b": "c=d"},
    )
    created = run(server.create_instance(str(tmp_path / "i")))
    assert created.returncode == 0, created.stderr
    assert run(server.create_instance(str(tmp_path / "i"))).returncode != 0, "an instance is never made over another"
    place = tmp_path / "i/usr/servers/defaultServer"
    assert flatten((place / "server.xml").read_bytes()) == {
        "server/featureManager/feature": "servlet-6.0",
        "server/featureManager/feature[2]": "concurrent-3.0",
        "server/featureManager/feature[3]": "transportSecurity-1.0",
        "server/httpEndpoint@id": "defaultHttpEndpoint",
        "server/httpEndpoint@host": "*",
        "server/config@updateTrigger": "disabled",
        "server/applicationMonitor@updateTrigger": "disabled",
        "server/webApplication@contextRoot": "/",
        "server/webApplication@location": "/srv/shop.war",
    }
    ports = flatten((place / "configDropins/overrides/ports.xml").read_bytes())
    assert (ports["server/httpEndpoint@httpPort"], ports["server/httpEndpoint@httpsPort"]) == ("-1", "9443")
    assert (place / "jvm.options").read_text() == "-Xmx1g\n"
    assert (place / "bootstrap.properties").read_text().endswith("\na.b=c=d\n")
    assert re.fullmatch(r"keystore_password=[0-9a-f]{32}\n", (place / "server.env").read_text())


def test_a_directory_that_its_script_could_misread_is_refused() -> None:
    with pytest.raises(PlanError, match="cannot run in"):
        Liberty(home="/opt/wlp").create_instance("/home/$(reboot)/instance")


def test_a_given_server_xml_is_written_as_it_is(tmp_path: Path) -> None:
    text = '<server>\n  <!-- ours --> <executor maxThreads="8"/>\n</server>'
    assert run(Liberty(home="/opt/wlp", server_xml=text).create_instance(str(tmp_path / "i"))).returncode == 0
    assert (tmp_path / "i/usr/servers/defaultServer/server.xml").read_text() == text
    assert not (tmp_path / "i/usr/servers/defaultServer/server.env").exists()


def test_the_version_is_read_and_a_java_that_is_too_old_is_refused() -> None:
    server = Liberty(home="/opt/wlp")
    assert server.parse_version(VERSION) == "25.0.0.6"
    with pytest.raises(PlanError, match="needs a later Java than 7"):
        server.parse_version(b'java version "1.7.0_80"\njava.lang.UnsupportedClassVersionError: com/ibm/...')
    with pytest.raises(ParseError):
        server.parse_version(VERSION.splitlines()[0])


def test_what_is_missing_on_the_host_is_named(tmp_path: Path) -> None:
    missing = run(Liberty(home=str(tmp_path / "nothing")).version_command())
    assert missing.returncode != 0
    assert b"there is no Liberty at" in missing.stderr
    for path in ("wlp/bin/server", "wlp/bin/tools/ws-server.jar"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch(mode=0o755)
    home = str(tmp_path / "wlp")
    no_war = run(Liberty(home=home, apps={"/": f"{tmp_path}/gone.war"}).version_command())
    assert b"there is no web application at" in no_war.stderr
    assert b"install Java 17" in run(Liberty(home=home, java_home=str(tmp_path)).version_command()).stderr
    (tmp_path / "wlp/etc").mkdir()
    (tmp_path / "wlp/etc/server.env").write_text("WLP_OUTPUT_DIR=/var/liberty\n")
    assert b"no run could have its own" in run(Liberty(home=home).version_command()).stderr


@pytest.mark.parametrize("java, warned", [("17.0.15", True), ("1.8.0_402", True), ("21.0.7", False), ("25", False)])
def test_virtual_threads_that_java_does_not_have_are_warned_of(java: str, warned: bool) -> None:
    asks = Liberty(home="/opt/wlp", server_xml='<server><managedThreadFactory virtual = "true"/></server>')
    log = (CASES / "liberty-tls.log").read_text().replace("java.version = 17.0.15", f"java.version = {java}")
    assert any("virtual threads: they need Java 21" in problem for problem in asks.problems(log)) == warned
    assert Liberty(home="/opt/wlp").problems(log) == ()


@pytest.mark.parametrize("name", ["JVM_ARGS", "WLP_USER_DIR", "LOG_DIR", "JAVA_HOME", "JDK_JAVA_OPTIONS", "X_CMD"])
def test_variables_that_its_script_would_evaluate_are_refused(name: str) -> None:
    with pytest.raises(PlanError, match=name):
        Liberty(home="/opt/wlp").environment("/i", ProcessStart(environment={name: "$(reboot)"}))


def test_a_jvm_options_step_explains_the_options_that_the_file_has() -> None:
    assert JvmOptionsStep(options=("-Xmx1g",)).explains("jvm.arguments.jvm_options[3]")


def test_an_edit_of_server_xml_explains_what_it_sets() -> None:
    edit = XmlEditStep(
        path="usr/servers/defaultServer/server.xml",
        edits=(SetAttributes(op="set", select="server/executor", attributes={"maxThreads": "8"}),),
    )
    assert edit.explains("server.liberty.server_xml.server/executor@maxThreads")
    assert not edit.explains("server.liberty.server_xml.server/executor@coreThreads")


@pytest.mark.parametrize(
    "raw",
    [
        {"home": "/opt/$(reboot)"},
        {"name": "../x"},
        {"name": "-x"},
        {"features": []},
        {"features": ["a</feature>"]},
        {"apps": {"shop": "/srv/shop.war"}},
        {"apps": {"/shop": "shop.war"}},
        {"dropins": {"../x": ""}},
        {"dropins": {"/x": ""}},
        {"bootstrap": {"a=b": ""}},
        {"bootstrap": {"a": "b\nc=d"}},
        {"jvm_options": ["-Da=\n-Db"]},
        {"server_xml": "<server>"},
        {"server_xml": "<Server/>"},
        {"server_xml": "<!DOCTYPE server [<!ENTITY a 'b'>]><server>&a;</server>"},
        {"server_xml": "<server/>", "apps": {"/": "/srv/shop.war"}},
        {"server_xml": "<server/>", "features": ["concurrent-3.0"]},
    ],
)
def test_a_liberty_that_makes_no_sense_is_refused(raw: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Liberty.model_validate({"home": "/opt/wlp", **raw})
