"""Apache Tomcat, each run in a CATALINA_BASE of its own; the installation is only read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from agents.base.command import Command, script
from agents.base.errors import ParseError, PlanError
from agents.base.installed import installed_home, is_web_application
from agents.base.process_start import ProcessStart
from agents.base.rights import Gate, Rights
from agents.formats.java_options import option_is_harmless
from agents.formats.jvm import OPTIONS_VARIABLE, JvmOption, jvm_problems, options_value, parse_java_major
from agents.formats.xml_document import flatten
from agents.servers.base.directory import Directory, plain_directory
from agents.servers.base.frames import parse_frames
from agents.servers.base.process import parse_process
from agents.servers.base.server import Server
from agents.servers.base.threads import nio_threads
from agents.servers.tomcat import scripts as tomcat_scripts
from agents.servers.tomcat.log import tomcat_problems

_WEBAPP = re.compile(r"(?:/(?!\.\.?(?:/|$))[A-Za-z0-9._#+@-]+)+|[A-Za-z0-9_][A-Za-z0-9._#-]*")


def _webapp(name: str) -> str:
    if not _WEBAPP.fullmatch(name) or len(name) > 512:
        raise ValueError(f"'{name}' is neither the name of a web application nor an absolute path")
    if name in ("manager", "host-manager"):
        raise ValueError(f"'{name}' is for administrators and is not deployed")
    if name == "examples":
        raise ValueError("the examples answer 403 to other hosts: set open_examples: true in place of naming them")
    return name


WebApp = Annotated[str, AfterValidator(_webapp)]

EVALUATED = re.compile(
    r"CATALINA_.*|JAVA_OPTS|JSSE_OPTS|LOGGING_.*|JPDA_.*|JDK_JAVA_OPTIONS|J(?:AVA|RE)_HOME|CLASSPATH|USE_NOHUP|UMASK|_RUN.*"
)
"""Variables that catalina.sh evaluates as shell text, or that this server sets itself."""


class Tomcat(Server):
    """A Tomcat installation at `home` on the SUT.

    `webapps` names those of the installation (or absolute paths of others) that are copied into the instance. Stock
    examples answer 403 to other hosts; `open_examples` serves them to everyone, from the untouched installation.
    """

    title: ClassVar[str] = "Tomcat"
    is_jvm: ClassVar[bool] = True
    rights: ClassVar[Rights] = Rights(
        "starts an installed Tomcat with installed web applications, in an instance of its own",
        data=("cpus", "instance_cpus", "listen", "ready", "keep_files"),
        gates={
            "home": installed_home("home"),
            "java_home": installed_home("java_home"),
            "webapps": Gate(
                "other directories as applications, and the manager",
                lambda server: all(map(is_web_application, server.webapps)),
            ),
            "jvm_options": Gate(
                "any other JVM option", lambda server: all(map(option_is_harmless, server.jvm_options))
            ),
        },
    )
    sections: ClassVar[tuple[str, ...]] = ("tomcat.",)

    kind: Literal["tomcat"] = "tomcat"
    home: Directory
    java_home: Directory | None = None
    webapps: tuple[WebApp, ...] = Field(("ROOT",), max_length=50)
    open_examples: bool = False
    tls: bool = False
    """HTTPS with a self-signed key made for the run, in place of HTTP, on `port`."""
    jvm_options: tuple[JvmOption, ...] = Field((), max_length=200)

    def version_command(self) -> Command:
        return script(tomcat_scripts.VERSION, self.home, self.java_home or "")

    def parse_version(self, output: bytes) -> str:
        """Tomcat's version number. PlanError when its Java is too old, ParseError when it tells no version."""
        text = output.decode("utf-8", "replace")
        if "UnsupportedClassVersionError" in text:
            java = parse_java_major(text)
            raise PlanError(
                f"the Tomcat at {self.home} needs a later Java than {java}",
                hint="Tomcat 11 needs Java 17 or later: install it, or set java_home.",
            )
        if match := re.search(r"^Server (?:version|number): *(?:Apache Tomcat/)?(\S+)", text, re.MULTILINE):
            return match[1]
        raise ParseError(f"the Tomcat at {self.home} does not tell its version")

    def create_instance(self, instance: str) -> Command:
        examples = "yes" if self.open_examples else ""
        descriptor = tomcat_scripts.EXAMPLES.format(home=self.home).encode() if self.open_examples else b""
        tls = "yes" if self.tls else ""
        where = (str(self.port), self.listen)
        args = (self.home, self.java_home or "", _safe(instance), *where, examples, tls, tomcat_scripts.PORTS)
        return script(tomcat_scripts.CREATE, *args, *self.webapps, stdin=descriptor, timeout_s=120)

    def start_command(self, instance: str, launch: ProcessStart) -> Command:
        """Ends as the java process itself, with its log on standard output."""
        return script(tomcat_scripts.START, self.home, self.java_home or "", _safe(instance))

    def environment(self, instance: str, launch: ProcessStart) -> dict[str, str]:
        """Raises PlanError on a variable that catalina.sh would evaluate, or that belongs to this server."""
        if refused := sorted(name for name in launch.environment if EVALUATED.fullmatch(name)):
            raise PlanError(
                f"the environment of Tomcat cannot have {', '.join(refused)}",
                hint="Use a jvm_options step for JVM options, and the application for java_home.",
            )
        variables = {**launch.environment, "CATALINA_HOME": self.home, "CATALINA_BASE": _safe(instance)}
        if options := (*self.jvm_options, *launch.jvm_options):
            variables[OPTIONS_VARIABLE] = options_value(options)
        if self.java_home:
            variables["JAVA_HOME"] = self.java_home
        return variables

    def log_path(self, instance: str) -> str | None:
        return None

    def gc_log_path(self, instance: str) -> str | None:
        return f"{instance}/logs/gc.log"

    def effective_command(self, instance: str, pid: int) -> Command:
        return script(tomcat_scripts.EFFECTIVE, _safe(instance), str(pid), timeout_s=90)

    def parse_effective(self, output: bytes) -> Mapping[str, str]:
        """`tomcat.server_xml.Server/Service/Connector@maxThreads`, `tomcat.context_xml...`, `process...`, `jvm...`."""
        frames = parse_frames(output)
        flat = parse_process(frames)
        for name, data in frames.items():
            if name in ("server_xml", "context_xml") or name.startswith("context:"):
                section = f"tomcat.{name.replace('context:', 'contexts.').removesuffix('.xml')}"
                flat.update({f"{section}.{path}": value for path, value in flatten(data).items()} if data else {})
        return flat

    def paired_threads(self, names: Sequence[str]) -> tuple[str, str] | None:
        return nio_threads(names)

    def problems(self, log: str) -> tuple[str, ...]:
        return (*jvm_problems(log), *tomcat_problems(log))


def _safe(instance: str) -> str:
    try:
        return plain_directory(instance)
    except ValueError as error:
        raise PlanError(f"Tomcat cannot run in {instance!r}: {error}") from None
