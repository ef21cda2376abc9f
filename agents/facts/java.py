"""The JDKs of a host: java on PATH, JAVA_HOME, and what lies in /usr/lib/jvm."""

from __future__ import annotations

import re
from dataclasses import dataclass

from agents.base.command import Command, script
from agents.base.errors import ParseError
from agents.facts.base import Fact, Section, decode, known

# A JDK has a file `release`, which costs nothing to read; java itself (0.1 s of CPU) is started for PATH only.
SCRIPT = """\
if command -v java >/dev/null; then
  path=$(command -v java)
  echo "== path $(readlink -f "$path" || echo "$path")"
  java -version 2>&1
fi
if [ -n "$JAVA_HOME" ] && [ -f "$JAVA_HOME/release" ]; then
  echo "== home $JAVA_HOME"
  cat "$JAVA_HOME/release"
fi
for home in /usr/lib/jvm/*; do
  if [ -d "$home" ] && [ ! -L "$home" ] && [ -f "$home/release" ]; then
    echo "== jvm $home"
    cat "$home/release"
  fi
done
true"""

_VERSION = re.compile(
    r'^(openjdk|java) (?:version )?"?([0-9][0-9A-Za-z._+-]{0,60})"?(?: ([0-9]{4}-[0-9]{2}-[0-9]{2}))?( LTS)?\s*$',
    re.ASCII | re.MULTILINE,
)
_RUNTIME = re.compile(r"^(.{1,100}Runtime Environment.{0,100}?) \(.{0,60}?build (\S{1,100})\)", re.MULTILINE)
_VM = re.compile(r"^(.{1,100} VM.{0,60}?) \(.{0,60}?build [^\s,]{1,100}, (.{1,100})\)", re.MULTILINE)
_REJECTED = re.compile(r"Unrecognized (?:VM )?option:? '?([^\s']{1,200})'?", re.ASCII)
_SECTION = re.compile(r"^== (path|home|jvm) (.{1,4000})$", re.MULTILINE)
_RELEASE = re.compile(r'^([A-Z_]{1,60})="?([^"\n]{0,4000}?)"?$', re.ASCII | re.MULTILINE)


@dataclass(frozen=True)
class JavaVersion:
    """What `java -version` says. `starts` False: this JVM refused an option, and `rejected_option` is that option."""

    starts: bool
    implementation: str | None = None
    version: str | None = None
    major: int | None = None
    released: str | None = None
    lts: bool | None = None
    runtime: str | None = None
    build: str | None = None
    vm: str | None = None
    vm_mode: str | None = None
    rejected_option: str | None = None


@dataclass(frozen=True)
class Jdk:
    """A JDK in a directory of the host (`place`: its java binary for the one on PATH)."""

    place: str
    version: str
    vendor: str | None = None
    build: str | None = None


@dataclass(frozen=True)
class Jdks:
    on_path: Jdk | None = None
    java_home: Jdk | None = None
    installed: tuple[Jdk, ...] = ()

    def stable(self) -> dict[str, str]:
        out: dict[str, str] = {}
        for name, jdk in (("path", self.on_path), ("home", self.java_home)):
            if jdk:
                named = known(place=jdk.place, version=jdk.version, vendor=jdk.vendor, build=jdk.build)
                out.update({f"java.{name}.{key}": value for key, value in named.items()})
        for jdk in self.installed:
            out[f"java.installed.{jdk.place}"] = " ".join(filter(None, (jdk.build or jdk.version, jdk.vendor)))
        return out

    def volatile(self) -> dict[str, str]:
        return {}


def command() -> Command:
    return script(SCRIPT)


def parse(output: bytes) -> Jdks:
    """The JDKs that were found; what does not say its version is left out."""
    text = decode(output)
    marks = list(_SECTION.finditer(text))
    on_path, java_home, installed = None, None, []
    for i, mark in enumerate(marks):
        body = text[mark.end() : marks[i + 1].start() if i + 1 < len(marks) else len(text)]
        if mark[1] == "path":
            on_path = _on_path(mark[2], body)
        elif jdk := _from_release(mark[2], body):
            if mark[1] == "home":
                java_home = jdk
            else:
                installed.append(jdk)
    return Jdks(on_path, java_home, tuple(installed))


def parse_version(output: bytes) -> JavaVersion:
    """What `java -version` says (stdout and stderr together). Raises ParseError for other text."""
    text = decode(output)
    if rejected := _REJECTED.search(text):
        return JavaVersion(starts=False, rejected_option=rejected[1])
    match = _VERSION.search(text)
    if not match:
        raise ParseError(f"this is not the output of java -version: {text.strip()[:80]}", line=1)
    runtime, vm = _RUNTIME.search(text), _VM.search(text)
    return JavaVersion(
        starts=True,
        implementation=match[1],
        version=match[2],
        major=_major(match[2]),
        released=match[3],
        lts=match[4] is not None,
        runtime=runtime[1] if runtime else None,
        build=runtime[2] if runtime else None,
        vm=vm[1] if vm else None,
        vm_mode=vm[2] if vm else None,
    )


def _on_path(place: str, body: str) -> Jdk | None:
    try:
        found = parse_version(body.encode())
    except ParseError:
        return None
    return Jdk(place, found.version, found.runtime, found.build) if found.version else None


def _from_release(place: str, body: str) -> Jdk | None:
    fields = dict(_RELEASE.findall(body))
    version = fields.get("JAVA_VERSION")
    if not version:
        return None
    return Jdk(place, version, fields.get("IMPLEMENTOR"), fields.get("JAVA_RUNTIME_VERSION"))


def _major(version: str) -> int | None:
    """8 for "1.8.0_412", 17 for "17.0.15"."""
    numbers = re.match(r"(?:1\.)?([0-9]{1,5})", version, re.ASCII)
    return int(numbers[1]) if numbers else None


def _label(rest: str) -> str:
    return rest.removeprefix("installed.").replace("path.", "on PATH: ", 1)


FACT = Fact(
    "java",
    command(),
    parse,
    (Section("java.", "Java", label=_label),),
)
