"""A server written for Node.js, started with the port and the address of the run in its environment."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field, StringConstraints

from agents.base.command import Command, script
from agents.base.errors import ParseError, PlanError
from agents.base.installed import WHERE, installed, program
from agents.base.process_start import ProcessStart
from agents.base.rights import Gate, Rights
from agents.base.runtime import Runtime
from agents.servers.base.directory import plain_directory
from agents.servers.base.files import instance_with
from agents.servers.base.frames import FRAME, parse_frames
from agents.servers.base.native import FIND_PROGRAM, NativeServer, Program
from agents.servers.base.process import PROCESS_FRAMES, parse_process

PORT_VARIABLE, ADDRESS_VARIABLE = "PORT", "HOST"
EVERY_ADDRESS = "0.0.0.0"  # noqa: S104 - what a program is told that is to listen everywhere

_VERSION = f"""
{FIND_PROGRAM}
need "$1" binary
[ -r "$2" ] || {{ echo "there is no $2, or $(id -un) may not read it" >&2; exit 1; }}
"$1" --version 2>&1
"""

_START = f"""
{FIND_PROGRAM}
binary=$1
cd -- "$2" || exit 1
shift 2
exec "$binary" "$@" 2>&1
"""

_EFFECTIVE = f"""
{FRAME}{PROCESS_FRAMES}{FIND_PROGRAM}
"$1" -p 'Object.entries(process.versions).map(pair => pair.join(" ")).join("\\n")' </dev/null 2>/dev/null |
  frame versions
sha256sum -- "$2" | frame checksum
process_frames "$3"
"""

_TUNING = re.compile(
    r"--(?:max-(?:old|semi)-space-size|min-semi-space-size|initial-old-space-size|semi-space-growth-factor|stack-size"
    r"|max-heap-size|v8-pool-size|max-http-header-size)=[0-9]{1,9}"
    r"|--(?:no-)?(?:opt|sparkplug|maglev|turbofan|always-sparkplug|jitless|lite-mode|optimize-for-size|single-threaded"
    r"|single-threaded-gc|concurrent-recompilation|parallel-scavenge|scavenger-max-new-space-capacity-mb)"
)


def flag_is_harmless(flag: str) -> bool:
    """Whether it is a flag of Node.js or V8 that sets memory, threads or the compiler; others load and run things."""
    return _TUNING.fullmatch(flag) is not None


def _script(path: str) -> str:
    if not re.search(r"\.[cm]?js$", plain_directory(path)):
        raise ValueError(f"'{path}' is no file that ends in .js, .mjs or .cjs")
    return path


ScriptPath = Annotated[str, AfterValidator(_script)]
Flag = Annotated[str, StringConstraints(pattern=r"^--?[A-Za-z][^\x00-\x1f\x7f]*$", max_length=1000)]
Argument = Annotated[str, StringConstraints(max_length=4096, pattern=r"^[^\x00]*$", strip_whitespace=False)]


class Node(NativeServer):
    """A script of the SUT that serves by itself, such as /opt/shop/server.js, with what it needs installed beside it.

    It reads its port from the variable PORT and its address from HOST, as most do; they are set for the run.
    """

    title: ClassVar[str] = "Node.js"
    rights: ClassVar[Rights] = Rights(
        "starts an installed script of Node.js with flags that tune",
        data=("cpus", "instance_cpus", "listen", "ready", "keep_files"),
        gates={
            "binary": program("node", "nodejs"),
            "entry": Gate(f"an `entry` that is not {WHERE}", lambda server: installed(server.entry)),
            "flags": Gate("any other flag of Node.js", lambda server: all(map(flag_is_harmless, server.flags))),
            "arguments": Gate("arguments of the script", lambda server: not server.arguments),
        },
    )
    sections: ClassVar[tuple[str, ...]] = ("node.",)

    kind: Literal["node"] = "node"
    entry: ScriptPath = Field(description="Where it is on the SUT, such as /opt/shop/server.js.")
    binary: Program = "node"
    flags: tuple[Flag, ...] = Field(
        (), max_length=100, description="Of Node.js and V8, such as --max-old-space-size=512, one per line."
    )
    arguments: tuple[Argument, ...] = Field((), max_length=100, description="Of the script, one per line.")

    @property
    def runtime(self) -> Runtime:
        return "node"

    def version_command(self) -> Command:
        return script(_VERSION, self.binary, self.entry)

    def parse_version(self, output: bytes) -> str:
        """Node's version number; ParseError when it tells none."""
        if match := re.match(rb"v(\d+\.\S+)", output.strip()):
            return match[1].decode("ascii", "replace")
        raise ParseError(f"{self.binary} does not tell the version of a Node.js")

    def create_instance(self, instance: str) -> Command:
        return instance_with(instance, {})

    def start_command(self, instance: str, launch: ProcessStart) -> Command:
        return script(_START, self.binary, instance, *self.flags, self.entry, *self.arguments)

    def environment(self, instance: str, launch: ProcessStart) -> dict[str, str]:
        """Raises PlanError on the variables that this server sets itself."""
        own = {PORT_VARIABLE: str(self.port), ADDRESS_VARIABLE: self.listen or EVERY_ADDRESS}
        if refused := sorted(set(own) & set(launch.environment)):
            raise PlanError(
                f"the environment of Node.js cannot have {', '.join(refused)}",
                hint="Give the application its port and listen in place of it.",
            )
        return {"NODE_ENV": "production", **super().environment(instance, launch), **own}

    def effective_command(self, instance: str, pid: int) -> Command:
        return script(_EFFECTIVE, self.binary, self.entry, str(pid), timeout_s=90)

    def parse_effective(self, output: bytes) -> Mapping[str, str]:
        """`node.versions.v8`, `node.sha256` of the script as it is now, `process...`."""
        frames = parse_frames(output)
        flat = parse_process(frames)
        lines = frames.get("versions", b"").decode("utf-8", "replace").splitlines()
        flat.update({f"node.versions.{name}": value for name, _, value in (line.partition(" ") for line in lines)})
        words = frames.get("checksum", b"").decode("utf-8", "replace").lstrip("\\").split()
        return {**flat, **({"node.sha256": words[0]} if words else {})}

    def problems(self, log: str) -> tuple[str, ...]:
        """A flag that Node does not take, a port that is taken, a module that is not there."""
        found = []
        for line in log.splitlines():
            if match := re.match(r".*: bad option: (\S+)", line):
                found.append(f"Node.js does not take the flag {match[1]}.")
            elif match := re.match(r"(?:Error: )?.*\bEADDRINUSE\b.*?(\S+:\d+)$", line):
                found.append(f"Node.js could not listen on {match[1]}: the port is taken.")
            elif match := re.match(r"Error(?: \[\w+\])?: (Cannot find (?:module|package) '[^']*')", line):
                found.append(f"Node.js reported: {match[1]}.")
        return tuple(dict.fromkeys(found))
