"""A web application in Python under gunicorn or uvicorn, with the port and the address of the run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints, model_validator

from agents.base.command import Command, script
from agents.base.errors import ParseError, PlanError
from agents.base.installed import WHERE, installed, program
from agents.base.process_start import ProcessStart
from agents.base.rights import Gate, Rights
from agents.base.runtime import Runtime
from agents.servers.base.directory import Directory
from agents.servers.base.files import instance_with
from agents.servers.base.frames import FRAME, parse_frames
from agents.servers.base.native import FIND_PROGRAM, NativeServer, Program
from agents.servers.base.process import PROCESS_FRAMES, parse_process
from agents.servers.base.proxying import listens_at

EVERY_ADDRESS = "0.0.0.0"  # noqa: S104 - what a program is told that is to listen everywhere
OWN_VARIABLES = re.compile(r"GUNICORN_CMD_ARGS|UVICORN_.*|WEB_CONCURRENCY|PYTHON(?:PATH|HOME|STARTUP)")
"""Variables in which both look for options, or Python for code: the application says all of it."""

# Without an import of the application, whose code may do anything.
_TELL = """
import importlib.metadata, platform, sys
names = ("gunicorn", "uvicorn", "uvloop", "httptools", "h11", "gevent", "django", "flask", "fastapi", "starlette")
print(sys.argv[1], importlib.metadata.version(sys.argv[1]))
print("python", platform.python_version())
print("implementation", platform.python_implementation(), platform.python_compiler())
for name in names:
    if name != sys.argv[1]:
        try:
            print(name, importlib.metadata.version(name))
        except importlib.metadata.PackageNotFoundError:
            pass
"""

_VERSION = f"""
{FIND_PROGRAM}
need "$1" binary
[ -d "$3" ] && [ -x "$3" ] || {{ echo "there is no directory $3, or $(id -un) may not read it" >&2; exit 1; }}
"$1" -I -c "$4" "$2" 2>/dev/null || {{ echo "$1 has no $2: install it there, or correct binary" >&2; exit 1; }}
"""

_START = f"""
{FIND_PROGRAM}
python=$1
cd -- "$2" || exit 1
shift 2
unset GUNICORN_CMD_ARGS WEB_CONCURRENCY PYTHONHOME PYTHONPATH PYTHONSTARTUP
exec "$python" -m "$@" 2>&1
"""

_EFFECTIVE = f"""
{FRAME}{PROCESS_FRAMES}{FIND_PROGRAM}
"$1" -I -c "$3" "$2" 2>/dev/null | frame versions
process_frames "$4"
"""

Entry = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*:[A-Za-z_][A-Za-z0-9_.]*$")
]
Argument = Annotated[str, StringConstraints(max_length=4096, pattern=r"^[^\x00]+$", strip_whitespace=False)]


class Python(NativeServer):
    """An application such as `shop.main:app`, found in `directory` on the SUT, under uvicorn (ASGI) or gunicorn.

    `binary` is the Python of the environment in which it is installed.
    """

    title: ClassVar[str] = "The Python server"
    rights: ClassVar[Rights] = Rights(
        "starts an installed application in Python under gunicorn or uvicorn",
        data=("cpus", "instance_cpus", "listen", "ready", "keep_files", "application"),
        gates={
            "directory": Gate(f"a `directory` that is not {WHERE}", lambda server: installed(server.directory)),
            "binary": program("python3", "python"),
            "arguments": Gate("further arguments of gunicorn or uvicorn", lambda server: not server.arguments),
        },
    )
    sections: ClassVar[tuple[str, ...]] = ("python.",)

    kind: Literal["python"] = "python"
    application: Entry = Field(description="MODULE:NAME, such as shop.main:app or shop.wsgi:application.")
    directory: Directory = Field(description="Where its module is on the SUT, such as /opt/shop.")
    server: Literal["uvicorn", "gunicorn"] = "uvicorn"
    binary: Program = Field(
        "python3", description="The Python in which it is installed, such as /opt/shop/venv/bin/python."
    )
    workers: int = Field(1, ge=1, le=1024, description="Processes that serve.")
    threads: int | None = Field(None, ge=1, le=1024, description="Threads of each worker, of gunicorn alone.")
    backlog: int = Field(2048, ge=1, le=1_000_000, description="Connections that may wait to be accepted.")
    arguments: tuple[Argument, ...] = Field((), max_length=100, description="More options of it, one word per line.")

    @model_validator(mode="after")
    def _options_of_its_server(self) -> Python:
        if self.threads is not None and self.server != "gunicorn":
            raise ValueError("uvicorn has no threads of its workers: leave threads empty, or take gunicorn")
        return self

    @property
    def runtime(self) -> Runtime:
        return "python"

    def version_command(self) -> Command:
        return script(_VERSION, self.binary, self.server, self.directory, _TELL)

    def parse_version(self, output: bytes) -> str:
        """`uvicorn 0.30.0`; ParseError when it tells none."""
        if match := re.match(rf"{self.server} \d\S*", output.decode("utf-8", "replace")):
            return match[0]
        raise ParseError(f"{self.binary} does not tell the version of {self.server}")

    def create_instance(self, instance: str) -> Command:
        return instance_with(instance, {})

    def start_command(self, instance: str, launch: ProcessStart) -> Command:
        """Ends as the process that the workers are children of; with one worker of uvicorn, as that itself."""
        options: tuple[str, ...]
        workers = ("--workers", str(self.workers), "--backlog", str(self.backlog))
        if self.server == "uvicorn":
            where = ("--host", self.listen or EVERY_ADDRESS, "--port", str(self.port), "--app-dir", self.directory)
            options = (*where, *workers, "--no-access-log")
        else:
            threads = ("--threads", str(self.threads)) if self.threads else ()
            options = ("--bind", listens_at(self.listen, self.port, EVERY_ADDRESS), "--chdir", self.directory)
            options = (*options, *workers, *threads)
        return script(_START, self.binary, instance, self.server, *options, *self.arguments, self.application)

    def environment(self, instance: str, launch: ProcessStart) -> dict[str, str]:
        """Raises PlanError on a variable in which Python or its server would look for options or code."""
        if refused := sorted(name for name in launch.environment if OWN_VARIABLES.fullmatch(name)):
            raise PlanError(
                f"the environment of {self.server} cannot have {', '.join(refused)}",
                hint="Say it in the application: directory, workers, threads, arguments.",
            )
        # The installation is only read, so no compiled module is written beside those that are there.
        return {"PYTHONDONTWRITEBYTECODE": "1", **super().environment(instance, launch)}

    def effective_command(self, instance: str, pid: int) -> Command:
        return script(_EFFECTIVE, self.binary, self.server, _TELL, str(pid), timeout_s=90)

    def parse_effective(self, output: bytes) -> Mapping[str, str]:
        """`python.versions.uvicorn`, `python.versions.uvloop` and others that decide how fast it is, `process...`."""
        frames = parse_frames(output)
        lines = frames.get("versions", b"").decode("utf-8", "replace").splitlines()
        pairs = (line.partition(" ") for line in lines)
        return {**parse_process(frames), **{f"python.versions.{name}": value for name, _, value in pairs if value}}

    def problems(self, log: str) -> tuple[str, ...]:
        """A port that is taken, and an application that cannot be imported."""
        found = []
        for line in log.splitlines():
            if re.search(r"address already in use|connection in use", line, re.IGNORECASE):
                found.append(f"{self.server} could not listen: the port is taken.")
            elif match := re.search(r"(Error loading ASGI app\..*|(?:ModuleNotFound|Import)Error: .*)", line):
                found.append(f"{self.server} could not load the application: {match[1].rstrip('.')}.")
        return tuple(dict.fromkeys(found))
