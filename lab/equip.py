"""Puts what the library's templates need onto the hosts of the lab: servers, small applications, JMeter."""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from lab.demo_hosts import DemoHost
from lab.host import LabHost
from lab.shell import LabError
from lab.tomcat import VERSION, install_tomcat

FETCH = "Start with bin/lab, which fetches or builds it."

PROJECT = "project"
BUILDER = "builder"
"""The role of a member that builds for the others."""
MAKEFILE = """app: server.js
\techo '#!/usr/bin/env node' >app
\tcat server.js >>app
\tchmod +x app
"""


@dataclass(frozen=True)
class Programs:
    """Archives and installations on this machine; None where there is none."""

    tomcat: Path | None = None
    liberty: Path | None = None
    rest_war: Path | None = None
    jmeter: Path | None = None
    node: Path | None = None


@dataclass(frozen=True)
class Spot:
    """A host's home directory: as this machine sees it, and as the host does."""

    name: str
    outside: Path
    inside: str

    @classmethod
    def of(cls, host: LabHost | DemoHost) -> Spot:
        return cls(host.name, host.home, "/root" if isinstance(host, LabHost) else str(host.home.resolve()))


def equip(
    suts: Iterable[Spot],
    driver: Spot,
    wanted: Iterable[str],
    programs: Programs,
    members: Mapping[str, Spot] = MappingProxyType({}),
) -> dict[str, str]:
    """Install what the settings named `wanted` point at; returns their values as the hosts see them.

    `members` are the hosts of a system's further members by role.

    LabError names the program that this machine does not have.
    """
    values: dict[str, str] = {}
    names = set(wanted)
    for sut in suts:
        if "tomcat_home" in names:
            install_tomcat(_there(programs.tomcat, "Tomcat"), sut.outside)
            values["tomcat_home"] = f"{sut.inside}/apache-tomcat-{VERSION}"
        if "liberty_home" in names:
            _unzip(_there(programs.liberty, "Open Liberty"), sut.outside)
            values["liberty_home"] = f"{sut.inside}/wlp"
        if "rest_war" in names:
            shutil.copy(_there(programs.rest_war, "REST application"), sut.outside / "rest.war")
            values["rest_war"] = f"{sut.inside}/rest.war"
        if "node_entry" in names:
            values["node_entry"] = _script(programs, "server.js", sut)
        if "repository" in names:
            values["repository"] = _project(programs, members.get(BUILDER, sut))
    if "shop_entry" in names:
        values["shop_entry"] = _script(programs, "shop.js", members["app"])
    if "jmeter_home" in names:
        source, target = _there(programs.jmeter, "JMeter"), driver.outside / "jmeter"
        if not (target / "bin" / "jmeter").exists():
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(source, target, symlinks=True)
        values["jmeter_home"] = f"{driver.inside}/jmeter"
    return values


def _script(programs: Programs, name: str, spot: Spot) -> str:
    """A shipped script of Node.js, copied to the host; its path there."""
    shutil.copy(_there(programs.node and programs.node / name, "server of Node.js"), spot.outside / name)
    return f"{spot.inside}/{name}"


def _project(programs: Programs, spot: Spot) -> str:
    """The path of a repository of two commits for npm and make; the second one answers three times as much."""
    script = _there(programs.node and programs.node / "server.js", "server of Node.js").read_text()
    at = spot.outside / PROJECT
    shutil.rmtree(at, ignore_errors=True)
    at.mkdir()
    (at / "Makefile").write_text(MAKEFILE)
    (at / "package.json").write_text('{"name": "project", "version": "1.0.0", "private": true}\n')
    own = ("git", "-C", str(at), "-c", "user.name=lab", "-c", "user.email=lab@localhost", "-c", "safe.directory=*")
    subprocess.run([*own, "init", "-q", "-b", "main"], check=True)
    for people, what in (("50", "A list of 50 people"), ("150", "A list of 150 people")):
        (at / "server.js").write_text(script.replace("n < 50;", f"n < {people};"))
        subprocess.run([*own, "add", "."], check=True)
        subprocess.run([*own, "commit", "-qm", what], check=True)
    return f"{spot.inside}/{PROJECT}"


def _there(path: Path | None, what: str) -> Path:
    if path is None or not path.exists():
        raise LabError(f"There is no {what} at {path}. {FETCH}" if path else f"There is no {what} yet. {FETCH}")
    return path


def _unzip(archive: Path, home: Path) -> None:
    """Unpack a Liberty unless it is there; zipfile loses the mode of bin/server, so it is set again."""
    target = home / "wlp"
    if (target / "bin" / "server").exists():
        return
    part = home / ".liberty.part"
    shutil.rmtree(part, ignore_errors=True)
    with zipfile.ZipFile(archive) as opened:
        opened.extractall(part)
    for program in (part / "wlp" / "bin").iterdir():
        if program.is_file() and not program.suffix:
            program.chmod(0o755)
    (part / "wlp").rename(target)
    shutil.rmtree(part)
