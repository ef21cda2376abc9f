"""A program in a JAR that serves by itself, such as one made by Spring Boot or Quarkus."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from agents.base.command import Command, script
from agents.base.errors import ParseError, PlanError
from agents.base.installed import WHERE, installed, installed_home
from agents.base.process_start import ProcessStart
from agents.base.rights import Gate, Rights
from agents.formats.gc_log import GC_LOG_OPTION
from agents.formats.java_options import option_is_harmless
from agents.formats.jvm import OPTIONS_VARIABLE, JvmOption, jvm_problems, options_value
from agents.servers.base.directory import Directory, plain_directory
from agents.servers.base.files import instance_with
from agents.servers.base.frames import FRAME, parse_frames
from agents.servers.base.process import PROCESS_FRAMES, parse_process
from agents.servers.base.server import Server
from agents.servers.base.threads import nio_threads

PORT, ADDRESS = "{port}", "{address}"
EVERY_ADDRESS = "0.0.0.0"  # noqa: S104 - what a program is told that is to listen everywhere

_JAVA = """
if [ -n "$java_home" ]; then java=$java_home/bin/java; else java=$(command -v java); fi
if [ ! -x "$java" ]; then
  echo "no Java at ${java_home:-the PATH}: install the one that the program needs, or set java_home" >&2; exit 1
fi
"""

_VERSION = f"""
jar=$1 java_home=$2
{_JAVA}
[ -r "$jar" ] || {{ echo "there is no $jar, or $(id -un) may not read it" >&2; exit 1; }}
sha256sum -- "$jar"
"""

# Behind -jar stand the arguments of the program; what is of the JVM comes from the variable, so no shell reads it.
_START = f"""
{GC_LOG_OPTION}
jar=$1 java_home=$2
cd -- "$3" || exit 1
shift 3
{_JAVA}
mkdir -p logs || exit 1
gc_log=$(gc_log_option "$java" "$PWD/logs/gc.log")
if [ -n "$gc_log" ]; then export {OPTIONS_VARIABLE}="$gc_log${{{OPTIONS_VARIABLE}:+ ${OPTIONS_VARIABLE}}}"; fi
exec "$java" -jar "$jar" "$@" 2>&1
"""

_EFFECTIVE = f"""
{FRAME}{PROCESS_FRAMES}
sha256sum -- "$1" | frame checksum
process_frames "$2"
"""

SPRING = (f"--server.port={PORT}", f"--server.address={ADDRESS}")
"""How Spring Boot is told where to listen: arguments of the program."""
QUARKUS = (f"-Dquarkus.http.port={PORT}", f"-Dquarkus.http.host={ADDRESS}")
"""How Quarkus is told where to listen: properties of the JVM."""

_TAKEN = re.compile(r"Port (\d+) was already in use|Port(?:\(s\))? already bound: (\d+)|java\.net\.BindException: (.+)")


def _jar(path: str) -> str:
    if not plain_directory(path).endswith(".jar"):
        raise ValueError(f"'{path}' is no file that ends in .jar")
    return path


JarPath = Annotated[str, AfterValidator(_jar)]
Argument = Annotated[str, StringConstraints(max_length=4096, pattern=r"^[^\x00]*$", strip_whitespace=False)]


class Jar(Server):
    """`java -jar` of a program on the SUT, in a directory of the run.

    Spring Boot and Quarkus are told the port and the address of the run. For another `framework`, write {port} and
    {address} into `arguments` or `jvm_options`.
    """

    title: ClassVar[str] = "The program"
    is_jvm: ClassVar[bool] = True
    rights: ClassVar[Rights] = Rights(
        "starts an installed Java program with JVM options that tune",
        data=("cpus", "instance_cpus", "listen", "ready", "keep_files"),
        gates={
            "jar": Gate(f"a `jar` that is not {WHERE}", lambda server: installed(server.jar)),
            "java_home": installed_home("java_home"),
            "jvm_options": Gate(
                "any other JVM option", lambda server: all(option_is_harmless(one) for one in server.tuning_options())
            ),
            "arguments": Gate("arguments of the program", lambda server: not server.arguments),
        },
    )
    sections: ClassVar[tuple[str, ...]] = ("jar.",)

    kind: Literal["jar"] = "jar"
    jar: JarPath = Field(description="Where the program is on the SUT, such as /opt/shop/shop.jar or quarkus-run.jar.")
    framework: Literal["spring", "quarkus", "other"] = "spring"
    java_home: Directory | None = None
    jvm_options: tuple[JvmOption, ...] = Field((), max_length=200)
    arguments: tuple[Argument, ...] = Field(
        (), max_length=100, description="Of the program, behind -jar, one per line."
    )

    @model_validator(mode="after")
    def _knows_its_port(self) -> Jar:
        if self.framework == "other" and not any(PORT in text for text in (*self.arguments, *self.jvm_options)):
            raise ValueError(f"write {PORT} into arguments or jvm_options: nothing else tells the program its port")
        return self

    def tuning_options(self) -> tuple[str, ...]:
        """The JVM options with a port and an address in place of what is filled in for a run."""
        return tuple(option.replace(PORT, "8080").replace(ADDRESS, "localhost") for option in self.jvm_options)

    def version_command(self) -> Command:
        return script(_VERSION, self.jar, self.java_home or "", timeout_s=120)

    def parse_version(self, output: bytes) -> str:
        """The program's name and the beginning of its checksum; ParseError without one."""
        match = re.search(rb"^\\?([0-9a-f]{64}) ", output, re.MULTILINE)
        if match is None:
            raise ParseError(f"{self.jar} has no checksum")
        return f"{self.jar.rpartition('/')[2]} sha256 {match[1][:12].decode()}"

    def create_instance(self, instance: str) -> Command:
        return instance_with(_safe(instance), {})

    def start_command(self, instance: str, launch: ProcessStart) -> Command:
        """Ends as the java process itself, with its log on standard output."""
        own = SPRING if self.framework == "spring" else ()
        arguments = [self._filled(argument) for argument in (*own, *self.arguments)]
        return script(_START, self.jar, self.java_home or "", _safe(instance), *arguments)

    def environment(self, instance: str, launch: ProcessStart) -> dict[str, str]:
        """Raises PlanError on the variable that this server sets itself."""
        if OPTIONS_VARIABLE in launch.environment:
            raise PlanError(
                f"the environment of a jar cannot have {OPTIONS_VARIABLE}",
                hint="Use a jvm_options step for JVM options.",
            )
        own = QUARKUS if self.framework == "quarkus" else ()
        options = [self._filled(option) for option in (*own, *self.jvm_options)]
        return {**launch.environment, OPTIONS_VARIABLE: options_value((*options, *launch.jvm_options))}

    def log_path(self, instance: str) -> str | None:
        return None

    def gc_log_path(self, instance: str) -> str | None:
        return f"{instance}/logs/gc.log"

    def effective_command(self, instance: str, pid: int) -> Command:
        return script(_EFFECTIVE, self.jar, str(pid), timeout_s=90)

    def parse_effective(self, output: bytes) -> Mapping[str, str]:
        """`jar.sha256` of the file as it is now, `process...`, `jvm...`."""
        frames = parse_frames(output)
        words = frames.get("checksum", b"").decode("utf-8", "replace").lstrip("\\").split()
        return {**parse_process(frames), **({"jar.sha256": words[0]} if words else {})}

    def paired_threads(self, names: Sequence[str]) -> tuple[str, str] | None:
        return nio_threads(names)

    def problems(self, log: str) -> tuple[str, ...]:
        taken = [f"The program could not listen: {match[0]}." for match in _TAKEN.finditer(log)]
        return (*jvm_problems(log), *dict.fromkeys(taken))

    def _filled(self, text: str) -> str:
        return text.replace(PORT, str(self.port)).replace(ADDRESS, self.listen or EVERY_ADDRESS)


def _safe(instance: str) -> str:
    """The option of the log of the garbage collector has this path, and `java` would split it at a blank."""
    try:
        return plain_directory(instance)
    except ValueError as error:
        raise PlanError(f"A jar cannot run in {instance!r}: {error}") from None
