"""What a host has of what runs use, and the lines that mend what it lacks: the same in guide, page and findings."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from agents.base.session import Session
from agents.running import host_commands
from agents.running.outfit import findings, look_command, look_for, look_for_ways, tools, ways
from agents.steps import STEPS
from agents.steps.base.step import Step
from tests.agents.editor_samples import STEP_SAMPLES

GUIDE = (Path(__file__).parents[3] / "docs/hosts.md").read_text()
ALL_THERE = "root sudo\nlinger yes\ntomcat open /opt/tomcat\t\njava yes\ntool wrk\ntool ab\nend\n"


async def test_this_machine_tells_what_it_has_and_is_not_changed(session: Session) -> None:
    found = await look_for(session, "bench", serves=True, drives=True)
    assert {one.result for one in found} <= {"there", "missing"}
    assert any(one.sentence.startswith(("Load tools: ", "No load tool")) for one in found)
    assert all(one.command == "" for one in found if one.result == "there")


def test_a_host_that_has_everything_is_told_so_without_a_command() -> None:
    found = findings(ALL_THERE, "bench", serves=True, drives=True)
    assert {one.result for one in found} == {"there"}
    assert [one.command for one in found if one.command] == []


@pytest.mark.parametrize(
    ("told", "role", "words", "command"),
    [
        ("root asks", "sut", "sudo asks bench for a password, or refuses it.", host_commands.allow_sudo("bench")),
        ("root none", "sut", "There is no sudo.", host_commands.SUDO),
        ("linger no", "driver", "a process that hides cannot be found", host_commands.linger("bench")),
        ("java no", "sut", "No Java on the PATH", host_commands.JAVA),
        ("java yes", "sut", "No Tomcat in /opt/*tomcat*", host_commands.TOMCAT),
        ("tomcat apart /usr/share/tomcat10\t", "sut", "no conf beside it", host_commands.TOMCAT),
        (
            "tomcat closed /opt/tomcat\t/opt/tomcat/conf",
            "sut",
            "There may be a Tomcat in /opt/tomcat, but this login may not read /opt/tomcat/conf.",
            "sudo chmod -R a+rX /opt/tomcat",
        ),
        ("java no", "driver", "No load tool is on the PATH", host_commands.LOAD_TOOL),
    ],
)
def test_what_is_missing_comes_first_with_the_line_that_mends_it(
    told: str, role: str, words: str, command: str
) -> None:
    found = findings(f"{told}\nend\n", "bench", serves=role == "sut", drives=role == "driver")
    assert next(one for one in found if words in one.sentence).command.startswith(command)
    assert [one.result for one in found] == sorted((one.result for one in found), key="missing there".index)


def test_who_has_another_server_is_told_of_it_and_not_of_tomcat_or_java() -> None:
    found = findings("server PostgreSQL\nserver nginx\njava no\nend\n", "bench", serves=True, drives=False)
    assert [(one.result, one.sentence) for one in found] == [("there", "Servers: PostgreSQL, nginx.")]


def test_a_driver_host_is_not_told_of_servers_and_a_server_not_of_load_tools() -> None:
    assert "Tomcat" not in " ".join(one.sentence for one in findings("end\n", "bench", serves=False, drives=True))
    assert "load tool" not in " ".join(one.sentence for one in findings("end\n", "bench", serves=True, drives=False))


def test_a_tomcat_in_a_closed_directory_is_found_by_a_plain_login(tmp_path: Path) -> None:
    """With the look's own shell text, on a tree in place of /opt."""
    place = Path(
        subprocess.run(["mktemp", "-d", "-p", "/var/tmp"], check=True, capture_output=True, text=True).stdout[:-1]
    )
    place.chmod(0o755)
    for name, mode in (("tomcat-open", 0o755), ("tomcat-closed", 0o700), ("apache-tomcat-conf", 0o755)):
        for file in ("bin/catalina.sh", "lib/catalina.jar", "conf/server.xml"):
            (place / name / file).parent.mkdir(parents=True, exist_ok=True)
            (place / name / file).touch()
        (place / name).chmod(mode if os.geteuid() == 0 else mode & ~0o500 if mode == 0o700 else mode)
    (place / "apache-tomcat-conf/conf").chmod(0o700 if os.geteuid() == 0 else 0)
    command = look_command()
    text = command.argv[2].replace("/opt/", f"{place}/")
    drop = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups") if os.geteuid() == 0 else ()
    try:
        done = subprocess.run((*drop, "sh", "-c", text, *command.argv[3:]), capture_output=True, text=True, check=True)
    finally:
        for path in (place / "tomcat-closed", place / "apache-tomcat-conf/conf"):
            path.chmod(0o755)
        subprocess.run(["rm", "-rf", place], check=True)
    lines = [line for line in done.stdout.splitlines() if str(place) in line]
    assert lines == [
        f"tomcat closed {place}/apache-tomcat-conf\t{place}/apache-tomcat-conf/conf",
        f"tomcat closed {place}/tomcat-closed\t{place}/tomcat-closed",
        f"tomcat open {place}/tomcat-open\t",
    ]


async def test_the_way_to_a_server_is_open_also_where_none_runs(session: Session) -> None:
    """Nobody listens on that address of this machine; one of the documentation's networks answers nobody."""
    found = await look_for_ways(session, {"sut": "127.0.0.9"})
    assert [(one.topic, one.result) for one in found] == [("way", "there")]
    assert await look_for_ways(session, {}) == ()


def test_a_way_that_is_shut_is_told_with_the_line_that_opens_it() -> None:
    shut, open_ = ways("way 28 sut-1\nway 7 sut 2\nway 6 unknown\nnoise\n")
    assert (shut.result, shut.command) == ("missing", host_commands.FIREWALL)
    assert "port 8080 of sut-1" in shut.sentence
    assert shut.sentence.endswith("On sut-1, with this host's address for DRIVER:")
    assert (open_.result, open_.sentence) == ("there", "The way to port 8080 of sut 2 is open.")


def test_every_load_tool_with_a_program_of_its_own_is_looked_for() -> None:
    assert {"wrk", "k6", "ab", "jmeter"} <= set(tools())


@pytest.mark.parametrize("kind", sorted(STEPS))
def test_a_step_says_when_it_needs_root(kind: str) -> None:
    """That each recorded case does so is in `tests/agents/steps/test_steps.py`."""

    def needs(**more: object) -> bool:
        step = STEPS[kind].model_validate({"kind": kind, **STEP_SAMPLES[kind], **more})
        assert isinstance(step, Step)
        return step.needs_root

    elsewhere = {"as_root": True} if kind == "command" else {"path": "/etc/security/limits.d/a.conf"}
    match STEPS[kind].root:
        case "always":
            assert needs()
        case "never":
            assert not needs()
        case _:
            assert (needs(), needs(**elsewhere)) == (False, True)


def test_the_guide_has_the_same_lines() -> None:
    blocks = "\n".join(re.findall(r"```sh\n(.*?)```", GUIDE, re.DOTALL)).splitlines()
    for line in (
        host_commands.account("bench"),
        host_commands.add_key("bench", "ssh-ed25519 AAAA... benchhub sut"),
        host_commands.allow_sudo("bench"),
        host_commands.linger("bench"),
        host_commands.JAVA,
        host_commands.TOMCAT,
        host_commands.LOAD_TOOL,
        host_commands.FIREWALL,
    ):
        assert line in blocks
    assert f"`{host_commands.SUDO}`" in GUIDE


def test_the_guide_says_which_steps_need_root() -> None:
    for when, kinds in host_commands.steps_by_root().items():
        assert f"| {when} | {', '.join(kinds)} |" in GUIDE
