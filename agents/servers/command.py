"""Any server that one command starts in the foreground: a Python server, a Java program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, ConfigDict, Field, StringConstraints, model_validator

from agents.base.command import Command, CommandResult, script
from agents.base.errors import ParseError, PlanError
from agents.base.process_start import ProcessStart
from agents.base.regular_expression import RegularExpression, matches
from agents.base.rights import Rights
from agents.base.runtime import Runtime, runtime_of
from agents.formats.jvm import OPTIONS_VARIABLE, jvm_problems, options_value
from agents.servers.base.files import inside, instance_with
from agents.servers.base.frames import FRAME, parse_frames
from agents.servers.base.process import PROCESS_FRAMES, parse_process
from agents.servers.base.server import Readiness, Server
from agents.servers.base.threads import nio_threads

Argument = Annotated[str, StringConstraints(max_length=4096, pattern=r"^[^\x00]*$")]

PORT, ADDRESS = "{port}", "{address}"
EVERY_ADDRESS = "0.0.0.0"  # noqa: S104 - what a program is told that is to listen everywhere

_START = """
cd -- "$1" || exit 1
shift
exec "$@" 2>&1
"""

_VERSION = """
command -v "$1" >/dev/null || { echo "there is no program $1 on this host" >&2; exit 1; }
"$@" 2>&1
"""

_EFFECTIVE = f"""
{FRAME}{PROCESS_FRAMES}
instance=$1 pid=$2 number=0
shift 2
for file; do
  cat "$instance/$file" 2>/dev/null | frame "file.$number"
  number=$((number + 1))
done
process_frames "$pid"
"""


_READY = """
cd -- "$1" || exit 1
shift
exec timeout 10 "$@" 2>&1
"""


class CommandReadiness(Readiness):
    """When the server counts as started: besides, a command on its own host with this exit status and output."""

    command: tuple[Argument, ...] = Field(
        (),
        max_length=100,
        description="A command line, run in the instance directory until it says so, such as pg_isready. {port} and "
        "{address} are filled in.",
    )
    command_status: int = Field(0, ge=0, le=255)
    command_output: RegularExpression = ""

    @model_validator(mode="after")
    def _names_a_command(self) -> CommandReadiness:
        if self.command and (not self.command[0] or self.command[0].startswith("-")):
            raise ValueError("the first word of command is the program to run")
        if not self.command and (self.command_status or self.command_output):
            raise ValueError("command_status and command_output are those of command: give it")
        return self

    def _waits_for_more(self) -> bool:
        return bool(self.log_pattern or self.command)


class CommandServer(Server):
    """Starts `argv` in the instance directory, into which `files` (path -> content) are written first.

    In `argv`, `files` and `ready.command`, {port} is its port (that of each instance, where there are several) and
    {address} the address that it is to listen on.
    """

    model_config = ConfigDict(str_strip_whitespace=False)

    title: ClassVar[str] = "server"
    is_jvm: ClassVar[bool] = False
    rights: ClassVar[Rights] = Rights("nothing", whole="it runs a command of its author on the host")
    sections: ClassVar[tuple[str, ...]] = ("files.",)

    kind: Literal["command"] = "command"
    argv: tuple[Argument, ...] = Field(
        min_length=1,
        max_length=200,
        description="The command line; blanks and quotation marks part its words as in a shell.",
    )
    files: dict[Annotated[str, AfterValidator(inside)], Annotated[str, Field(max_length=256 * 1024)]] = Field(
        default_factory=dict, max_length=50
    )
    ready: CommandReadiness = CommandReadiness()
    version: tuple[Argument, ...] | None = Field(None, min_length=1, max_length=20)
    """Prints the server's version; without it the program's path stands for it."""

    @model_validator(mode="after")
    def _program(self) -> CommandServer:
        if any(not argv[0] or argv[0].startswith("-") for argv in (self.argv, self.version or self.argv)):
            raise ValueError("the first argument is the program to run")
        if self.count > 1 and not any(PORT in text for text in (*self.argv, *self.files.values())):
            raise ValueError(f"each instance needs a port of its own: write {PORT} in argv or in a file")
        return self

    def instance(self, number: int, address: str = "") -> CommandServer:
        own = super().instance(number, address)

        def filled(text: str) -> str:
            return text.replace(PORT, str(own.port)).replace(ADDRESS, own.listen or EVERY_ADDRESS)

        argv = tuple(map(filled, self.argv))
        files = {path: filled(text) for path, text in self.files.items()}
        ready = self.ready.model_copy(update={"command": tuple(map(filled, self.ready.command))})
        return own.model_copy(update={"argv": argv, "files": files, "ready": ready})

    @property
    def runtime(self) -> Runtime:
        return runtime_of(self.argv[0])

    def version_command(self) -> Command:
        program = self.argv[0]
        # What a build or `files` puts into the instance is not there yet: its path stands for it.
        path = ("echo", program) if program.startswith("./") else ("command", "-v", program)
        return script(_VERSION, *(self.version or path))

    def parse_version(self, output: bytes) -> str:
        lines = output.decode("utf-8", "replace").strip().splitlines()
        if not lines:
            raise ParseError(f"{(self.version or self.argv)[0]} printed no version")
        return lines[0].strip()[:200]

    def create_instance(self, instance: str) -> Command:
        return instance_with(instance, self.files)

    def start_command(self, instance: str, launch: ProcessStart) -> Command:
        return script(_START, instance, *self.argv)

    def environment(self, instance: str, launch: ProcessStart) -> dict[str, str]:
        """Raises PlanError when JVM options are asked for and the program is not java: nobody would read them."""
        variables = dict(launch.environment)
        if launch.jvm_options and PurePosixPath(self.argv[0]).name != "java":
            raise PlanError(
                f"JVM options have no effect on {self.argv[0]}",
                hint=f"Take the step out. A script that starts java takes {OPTIONS_VARIABLE} from its environment.",
            )
        if launch.jvm_options:
            variables[OPTIONS_VARIABLE] = options_value(launch.jvm_options)
        return variables

    def ready_command(self, instance: str) -> Command | None:
        return script(_READY, instance, *self.ready.command) if self.ready.command else None

    def unready(self, result: CommandResult) -> str:
        said, ready = result.text.strip(), self.ready
        last = f": {said.splitlines()[-1][:200]}" if said else ""
        if result.exit_status != ready.command_status:
            return f"{ready.command[0]} ended with status {result.exit_status}, not {ready.command_status}{last}"
        if ready.command_output and not matches(ready.command_output, said):
            return f"{ready.command[0]} printed nothing like {ready.command_output!r}{last}"
        return ""

    def log_path(self, instance: str) -> str | None:
        return None

    def effective_command(self, instance: str, pid: int) -> Command:
        return script(_EFFECTIVE, instance, str(pid), *self.files, timeout_s=90)

    def parse_effective(self, output: bytes) -> Mapping[str, str]:
        """`process...`, `jvm...`, and each file of the instance whole as `files.PATH`."""
        frames = parse_frames(output)
        contents = {path: frames.get(f"file.{number}", b"") for number, path in enumerate(self.files)}
        files = {f"files.{path}": data.decode("utf-8", "replace") for path, data in contents.items()}
        return {**parse_process(frames), **files}

    def paired_threads(self, names: Sequence[str]) -> tuple[str, str] | None:
        return nio_threads(names)

    def problems(self, log: str) -> tuple[str, ...]:
        return jvm_problems(log)
