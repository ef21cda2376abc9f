"""A program in a JAR: what it is told, and a real one started from the commands of BenchHub."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from agents.base.errors import ParseError, PlanError
from agents.base.process_start import ProcessStart
from agents.servers.jar import Jar
from tests import needs
from tests.agents.run_lab import free_port
from tests.agents.servers.native_servers import fetch, made, run, started
from tests.listening import listening

PROGRAM = """
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;

public class Main {
    public static void main(String[] args) throws Exception {
        String host = System.getProperty("quarkus.http.host"), port = System.getProperty("quarkus.http.port");
        for (String arg : args) {
            if (arg.startsWith("--server.port=")) port = arg.substring(14);
            if (arg.startsWith("--server.address=")) host = arg.substring(17);
        }
        HttpServer server = HttpServer.create(new InetSocketAddress(host, Integer.parseInt(port)), 0);
        byte[] said = (String.join("|", args) + "\\n" + System.getProperty("hostile")).getBytes("UTF-8");
        server.createContext("/", exchange -> {
            exchange.sendResponseHeaders(200, said.length);
            exchange.getResponseBody().write(said);
            exchange.close();
        });
        server.start();
    }
}
"""
HOSTILE = "$(touch PWNED) `touch PWNED` '; \" *"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    needs.require_program("java", "javac")
    place = tmp_path_factory.mktemp("program")
    (place / "Main.java").write_text(PROGRAM)
    subprocess.run(["javac", "Main.java"], cwd=place, check=True, timeout=300)
    subprocess.run(["jar", "cfe", "shop.jar", "Main", "Main.class"], cwd=place, check=True, timeout=300)
    return str(place / "shop.jar")


@pytest.mark.parametrize("framework", ["spring", "quarkus", "other"])
def test_a_real_program_listens_where_the_load_goes(program: str, tmp_path: Path, framework: str) -> None:
    options: dict[str, Any] = {"jvm_options": ["-Xmx64m"], "arguments": [HOSTILE]}
    if framework == "other":
        options["arguments"] += ["--server.port={port}", "--server.address={address}"]
    server = Jar.model_validate({"jar": program, "framework": framework, "port": free_port(), **options})
    server = server.instance(0, "127.0.0.2")
    version = server.parse_version(run(server.version_command()).stdout)
    instance = made(server, tmp_path / "run" / "instance")
    launch = ProcessStart(environment={"TZ": "UTC"}, jvm_options=(f"-Dhostile={HOSTILE}", "-XX:+UseSerialGC"))
    with started(server, instance, launch) as java:
        assert Path(os.readlink(f"/proc/{java.pid}/exe")).name == "java", "the job's process is Java itself"
        said = fetch(f"http://127.0.0.2:{server.port}/").decode()
        assert {address for address, _ in listening({java.pid})} == {"127.0.0.2"}
        effective = java.effective()
        assert Path(server.gc_log_path(instance) or "").exists()
    assert HOSTILE in said.splitlines()[0].split("|")
    assert said.splitlines()[1] == HOSTILE
    assert version == f"shop.jar sha256 {effective['jar.sha256'][:12]}"
    assert effective["process.environment.TZ"] == "UTC"
    if "jvm.flags.MaxHeapSize" in effective:  # a runtime without development tools has none to ask
        assert effective["jvm.flags.MaxHeapSize"] == str(64 << 20)
        assert effective["jvm.flags.UseSerialGC"] == "true"
    assert not list(tmp_path.rglob("PWNED"))
    assert not Path("PWNED").exists()


def test_what_is_missing_on_the_host_is_named(tmp_path: Path) -> None:
    no_java = run(Jar(jar="/opt/shop.jar", java_home=str(tmp_path)).version_command())
    assert no_java.returncode != 0
    assert b"no Java at" in no_java.stderr
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/java").write_text("#!/bin/sh\n")
    (tmp_path / "bin/java").chmod(0o755)
    no_jar = run(Jar(jar=f"{tmp_path}/shop.jar", java_home=str(tmp_path)).version_command())
    assert no_jar.returncode != 0
    assert b"there is no" in no_jar.stderr
    with pytest.raises(ParseError):
        Jar(jar="/opt/shop.jar").parse_version(b"no such file\n")


def test_each_framework_is_told_its_port_in_its_own_way() -> None:
    spring = Jar(jar="/opt/a.jar", port=81).instance(0, "::1")
    assert spring.start_command("/i", ProcessStart()).argv[-2:] == ("--server.port=81", "--server.address=::1")
    quarkus = Jar(jar="/opt/a.jar", port=81, framework="quarkus")
    assert quarkus.environment("/i", ProcessStart()) == {
        "JDK_JAVA_OPTIONS": "-Dquarkus.http.port=81 -Dquarkus.http.host=0.0.0.0"
    }


def test_a_variable_and_a_directory_that_would_not_reach_java_are_refused() -> None:
    with pytest.raises(PlanError, match="JDK_JAVA_OPTIONS"):
        Jar(jar="/opt/a.jar").environment("/i", ProcessStart(environment={"JDK_JAVA_OPTIONS": "-Xmx1g"}))
    with pytest.raises(PlanError, match="cannot run in"):
        Jar(jar="/opt/a.jar").create_instance("/home/a b/instance")


@pytest.mark.parametrize(
    "raw, named",
    [
        ({"jar": "shop.jar"}, "jar"),
        ({"jar": "/opt/shop.war"}, "ends in .jar"),
        ({"jar": "/opt/$(id).jar"}, "jar"),
        ({"framework": "other"}, r"write \{port\}"),
        ({"framework": "other", "arguments": ["--port=80"]}, r"write \{port\}"),
        ({"jvm_options": ["Xmx1g"]}, "jvm_options"),
        ({"arguments": ["a\0b"]}, "arguments"),
    ],
)
def test_a_jar_that_makes_no_sense_is_refused(raw: dict[str, Any], named: str) -> None:
    with pytest.raises(ValidationError, match=named):
        Jar.model_validate({"jar": "/opt/shop.jar", **raw})
