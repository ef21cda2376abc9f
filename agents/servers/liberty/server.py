"""Open Liberty, each run in a WLP_USER_DIR of its own; the installation is only read."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from agents.base.command import Command, script
from agents.base.errors import ParseError, PlanError
from agents.base.installed import installed_home, is_web_application
from agents.base.process_start import ProcessStart
from agents.base.rights import Gate, Rights
from agents.formats.java_options import option_is_harmless, property_is_harmless
from agents.formats.jvm import JvmOption, parse_java_major
from agents.formats.server_xml import document_is_harmless
from agents.formats.xml_document import XmlError, local_name, parse_xml
from agents.servers.base.directory import Directory, plain_directory
from agents.servers.base.files import instance_with
from agents.servers.base.frames import parse_frames
from agents.servers.base.process import parse_process
from agents.servers.base.server import Readiness, Server
from agents.servers.liberty import scripts as liberty_scripts
from agents.servers.liberty.configuration import parse_liberty, ports_xml, server_xml
from agents.servers.liberty.log import liberty_problems


def _server_document(text: str) -> str:
    try:
        name = local_name(parse_xml(text.encode())) if text else "server"
    except XmlError as error:
        raise ValueError(str(error)) from None
    if name != "server":
        raise ValueError(f"the root element of a server.xml is server, this is {name}")
    return text


def _instance(path: str) -> str:
    try:
        return plain_directory(path)
    except ValueError:
        raise PlanError(
            f"Liberty cannot run in {path!r}.", hint="Its path may have letters, digits and . _ + @ % , = - only."
        ) from None


_PAGE = re.compile(r"(?:[^/]+/)+[^/]+\.(?:css|csv|html?|json|md|svg|txt)", re.IGNORECASE)


def _is_page(path: str) -> bool:
    """Whether Liberty sends the file as it is: not a page of Java, a class, or a description of the application."""
    return _PAGE.fullmatch(path) is not None and not re.search(r"(?:WEB|META)-INF", path, re.IGNORECASE)


ServerName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$")]
Feature = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9.:-]{0,99}$")]
ContextRoot = Annotated[str, StringConstraints(pattern=r"^/[A-Za-z0-9._~/-]{0,200}$")]
PropertyName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9._-]{0,199}$")]
PropertyValue = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f\\]*$", max_length=1000)]
DropinPath = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*(?:/[A-Za-z0-9_][A-Za-z0-9_.-]*)*$")
]
DropinText = Annotated[str, StringConstraints(strip_whitespace=False, max_length=256 * 1024)]
ServerXml = Annotated[str, StringConstraints(max_length=256 * 1024), AfterValidator(_server_document)]

EVALUATED = re.compile(
    r"JVM_.*|WLP_.*|SERVER_.*|PID_.*|X_.*|LOG_(?:DIR|FILE)|J(?:AVA|RE)_HOME|JAVA_(?:DEBUG|AGENT.*|CMD.*|CHECKPOINT.*)|CRIU_.*"
    r"|(?:IBM|OPENJ9|JDK)_JAVA_OPTIONS|JAVA_TOOL_OPTIONS|VERBOSEGC|keystore_password"
)
"""Variables that bin/server evaluates as shell text, or that this server sets itself."""

QUIET = {
    "com.ibm.ws.logging.newLogsOnStart": "false",
    "com.ibm.ws.logging.console.log.level": "OFF",
    "com.ibm.ws.logging.copy.system.streams": "false",
}
"""One log: what the JVM prints before Liberty runs and what Liberty logs both end up in messages.log."""


class Liberty(Server):
    """A Liberty installation at `home` (the directory `wlp`) on the SUT, for one server named `name`.

    `server.xml` is made from `features` and `apps` (context root -> WAR file or unpacked directory on the SUT), or is
    given as `server_xml`. `dropins` are small files of applications, path -> text: `hello.war/index.html` is served as
    `/hello/`. Liberty listens on `port` only, with TLS and a certificate of its own when `tls` is set.
    """

    title: ClassVar[str] = "Liberty"
    is_jvm: ClassVar[bool] = True
    rights: ClassVar[Rights] = Rights(
        "starts an installed Liberty with installed web applications and static pages, in an instance of its own",
        data=("cpus", "instance_cpus", "listen", "ready", "keep_files", "name", "features"),
        gates={
            "home": installed_home("home"),
            "java_home": installed_home("java_home"),
            "apps": Gate(
                "other directories as applications", lambda server: all(map(is_web_application, server.apps.values()))
            ),
            "dropins": Gate("files that are no static pages", lambda server: all(map(_is_page, server.dropins))),
            "server_xml": Gate(
                "a `server_xml` with elements and values that name classes, places or files",
                lambda server: not server.server_xml or document_is_harmless(server.server_xml),
            ),
            "bootstrap": Gate(
                "bootstrap properties that name classes, places or addresses, or open a console",
                lambda server: all(property_is_harmless(*pair) for pair in server.bootstrap.items()),
            ),
            "jvm_options": Gate(
                "any other JVM option", lambda server: all(map(option_is_harmless, server.jvm_options))
            ),
        },
    )
    sections: ClassVar[tuple[str, ...]] = ("server.",)

    kind: Literal["liberty"] = "liberty"
    home: Directory
    java_home: Directory | None = None
    name: ServerName = "defaultServer"
    tls: bool = False
    features: tuple[Feature, ...] = Field(("servlet-6.0",), min_length=1, max_length=100)
    apps: dict[ContextRoot, Directory] = Field(default_factory=dict, max_length=20)
    dropins: dict[DropinPath, DropinText] = Field(default_factory=dict, max_length=40)
    server_xml: ServerXml = ""
    bootstrap: dict[PropertyName, PropertyValue] = Field(default_factory=dict, max_length=100)
    jvm_options: tuple[JvmOption, ...] = Field((), max_length=200)
    ready: Readiness = Readiness(log_pattern="CWWKF0011I")

    @model_validator(mode="after")
    def _one_source(self) -> Liberty:
        if self.server_xml and (self.apps or self.features != Liberty.model_fields["features"].default):
            raise ValueError("write the features and applications into server_xml: a given server.xml is not changed")
        return self

    def version_command(self) -> Command:
        return script(liberty_scripts.VERSION, self.home, self.java_home or "", *self.apps.values(), timeout_s=60)

    def parse_version(self, output: bytes) -> str:
        """Liberty's version number. PlanError when its Java is too old, ParseError when it tells no version."""
        text = output.decode("utf-8", "replace")
        if "UnsupportedClassVersionError" in text:
            raise PlanError(
                f"the Liberty at {self.home} needs a later Java than {parse_java_major(text)}",
                hint="Install Java 21 or later, or set java_home.",
            )
        if match := re.search(r"^(?:Open Liberty|WebSphere Application Server) (\S+) \(", text, re.MULTILINE):
            return match[1]
        raise ParseError(f"the Liberty at {self.home} does not tell its version")

    def create_instance(self, instance: str) -> Command:
        """All in `usr/servers/NAME` of the instance: steps reach `usr/servers/NAME/server.xml`."""
        bootstrap = "".join(f"{name}={value}\n" for name, value in {**QUIET, **self.bootstrap}.items())
        files = {
            "server.xml": self.server_xml or server_xml(self._features(), self.apps),
            # There even without options: otherwise those of the installation would count.
            "jvm.options": "".join(f"{option}\n" for option in self.jvm_options),
            "bootstrap.properties": bootstrap,
            "configDropins/overrides/ports.xml": ports_xml(self.port, self.listen, tls=self.tls),
            **{f"dropins/{path}": text for path, text in self.dropins.items()},
        }
        if self.tls:
            files["server.env"] = f"keystore_password={secrets.token_hex(16)}\n"
        placed = {f"usr/servers/{self.name}/{path}": text for path, text in files.items()}
        return instance_with(_instance(instance), placed)

    def start_command(self, instance: str, launch: ProcessStart) -> Command:
        """Ends as the java process itself. The launch's JVM options go into a file that Liberty reads last."""
        args = (self.home, self.java_home or "", _instance(instance), self.name, *launch.jvm_options)
        return script(liberty_scripts.START, *args)

    def environment(self, instance: str, launch: ProcessStart) -> dict[str, str]:
        """Raises PlanError on a variable that bin/server would evaluate, or that belongs to this server."""
        if refused := sorted(name for name in launch.environment if EVALUATED.fullmatch(name)):
            raise PlanError(
                f"the environment of Liberty cannot have {', '.join(refused)}",
                hint="Use a jvm_options step for JVM options, and the application for java_home.",
            )
        logs = f"{_instance(instance)}/logs"
        variables = {**launch.environment, "WLP_USER_DIR": f"{instance}/usr", "LOG_DIR": logs, "X_LOG_DIR": logs}
        if self.java_home:
            variables["JAVA_HOME"] = self.java_home
        return variables

    def log_path(self, instance: str) -> str | None:
        return f"{instance}/logs/messages.log"

    def gc_log_path(self, instance: str) -> str | None:
        return f"{instance}/logs/gc.log"

    def effective_command(self, instance: str, pid: int) -> Command:
        return script(
            liberty_scripts.EFFECTIVE, f"{_instance(instance)}/usr/servers/{self.name}", str(pid), timeout_s=90
        )

    def parse_effective(self, output: bytes) -> Mapping[str, str]:
        """`server.liberty.server_xml.server/httpEndpoint@host`, `jvm.arguments.jvm_options[0]`, `process...`."""
        frames = parse_frames(output)
        return {**parse_process(frames), **parse_liberty(frames)}

    def problems(self, log: str) -> tuple[str, ...]:
        return liberty_problems(
            log, asks_virtual_threads=bool(re.search(r"\bvirtual\s*=\s*[\"']true", self.server_xml))
        )

    def _features(self) -> tuple[str, ...]:
        """With `tls`, also the feature that brings it, unless one of its versions is named."""
        named = any(re.match(r"(?:transportSecurity|ssl)-", feature) for feature in self.features)
        return self.features if named or not self.tls else (*self.features, "transportSecurity-1.0")
