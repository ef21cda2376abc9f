"""What every server under test must offer. Instances are private to a run; the installation is never edited."""

from __future__ import annotations

import ipaddress
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from agents.base.command import Command, CommandResult
from agents.base.cpuset import CpuSet, format_cpus, parse_cpus
from agents.base.model import Frozen
from agents.base.process_start import ProcessStart
from agents.base.regular_expression import RegularExpression
from agents.base.rights import Guarded
from agents.base.runtime import Runtime
from agents.servers.base.files import inside

MAX_INSTANCES = 64


def _listen_address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text)) if text else ""
    except ValueError:
        raise ValueError(f"'{text}' is no IP address; leave it empty for the one that the load uses") from None


ListenAddress = Annotated[str, Field(max_length=64), AfterValidator(_listen_address)]


def _kept_file(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9._*?@+/-]{1,255}", inside(text)):
        raise ValueError(
            f"'{text}' is a path of letters, digits and . _ - @ + with * and ? for what they mean to a shell"
        )
    return text


KeptFile = Annotated[str, AfterValidator(_kept_file)]
"""A path inside the instance directory, in which * and ? stand for what they mean to a shell."""
SECTIONS = ("process.", "jvm.", "instances.")
"""How settings begin that every server may have otherwise."""


class Readiness(Frozen):
    """When the server counts as started: what answers the driver host, and optionally a line in its log."""

    probe: Literal["http", "tcp", "none"] = Field(
        "http",
        description="What the driver host asks: a page (http), whether the port takes a connection (tcp), or nothing.",
    )
    path: str = Field("/", pattern=r"^/[^\s]*$")
    status: int = Field(200, ge=100, le=599)
    body_contains: str = ""
    log_pattern: RegularExpression = ""
    timeout_s: float = Field(60.0, gt=0, le=900)

    @model_validator(mode="after")
    def _asks_something(self) -> Readiness:
        page = {"path", "status", "body_contains"} & self.model_fields_set
        given = sorted(name for name in page if getattr(self, name) != type(self).model_fields[name].default)
        if self.probe != "http" and given:
            raise ValueError(f"{given[0]} is what a page has; the probe {self.probe} asks for none")
        if self.probe == "none" and not self._waits_for_more():
            raise ValueError("without a probe nothing says when the server is ready; give a log_pattern")
        return self

    def _waits_for_more(self) -> bool:
        return bool(self.log_pattern)


class Server(Guarded, ABC):
    """A server under test and how it is started. Registered in `agents.servers.AnyServer`."""

    title: ClassVar[str]
    """What people call it, in sentences."""
    is_jvm: ClassVar[bool]
    """Whether it is one process, a JVM, of which a log of the garbage collector is kept (`gc_log_path`)."""
    sections: ClassVar[tuple[str, ...]]
    """How the settings begin in `parse_effective` that two servers of this kind have otherwise when they differ."""

    kind: str
    port: int = Field(8080, ge=1, le=65535)
    listen: ListenAddress = Field(
        "",
        description="The IP address that it listens on. Empty: the one that the load uses, where that is one of the "
        "host's own, else every address.",
    )
    cpus: CpuSet = ""
    instance_cpus: tuple[CpuSet, ...] = Field(
        (),
        max_length=MAX_INSTANCES,
        description="For several instances of the server: the CPUs of each, one per line. They listen on the port, the "
        "port + 1 and so on, and each has a load tool of its own with all options of the workload.",
    )
    ready: Readiness = Readiness()
    keep_files: tuple[KeptFile, ...] = Field(
        (),
        max_length=20,
        description="Files of the run's instance directory that are kept whole beside its log, such as logs/*.log, one "
        "pattern per line.",
    )

    @field_validator("ready", mode="before")
    @classmethod
    def _is_asked_as_its_kind_is(cls, ready: Any) -> Any:
        """Who gives a database more time has not said that it shall answer with a page."""
        probe = cls.model_fields["ready"].default.probe
        about_a_page = {"probe", "path", "status", "body_contains"}
        if probe != "http" and isinstance(ready, Mapping) and about_a_page.isdisjoint(ready):
            return {"probe": probe, **ready}
        return ready

    @model_validator(mode="after")
    def _instances_have_cpus_of_their_own(self) -> Server:
        if not self.instance_cpus:
            return self
        if self.cpus:
            raise ValueError("give cpus for one instance, or instance_cpus for several, not both")
        sets = [set(parse_cpus(cpus)) for cpus in self.instance_cpus]
        if not all(sets) or len(set.union(*sets)) < sum(map(len, sets)):
            raise ValueError("each of instance_cpus names CPUs that no other has")
        if self.port + self.count - 1 > 65535:
            raise ValueError(f"{self.count} instances from port {self.port} on need ports above 65535")
        return self

    @property
    def runtime(self) -> Runtime:
        """What runs its program: profilers that look into it fit one of these."""
        return "jvm" if self.is_jvm else ""

    @property
    def count(self) -> int:
        """How many instances there are."""
        return max(1, len(self.instance_cpus))

    @property
    def scheme(self) -> Literal["http", "https"]:
        """How a page of it is asked for; a server that speaks TLS has a field `tls`."""
        return "https" if getattr(self, "tls", False) else "http"

    @property
    def all_cpus(self) -> str:
        """The CPUs of all instances."""
        return format_cpus([cpu for cpus in self.instance_cpus for cpu in parse_cpus(cpus)]) or self.cpus

    def instance(self, number: int, address: str = "") -> Self:
        """The instance with this number, counted from 0, as a server of its own, which listens on `address`.

        An address of its author's choice goes first; "" is every address.
        """
        own: dict[str, object] = {"listen": self.listen or address}
        if self.instance_cpus:
            own |= {"port": self.port + number, "cpus": self.instance_cpus[number], "instance_cpus": ()}
        return self.model_copy(update=own)

    @abstractmethod
    def version_command(self) -> Command:
        """Prints the version of the installation; fails with a clear message when it is not there."""

    @abstractmethod
    def parse_version(self, output: bytes) -> str: ...

    @abstractmethod
    def create_instance(self, instance: str) -> Command:
        """Makes the private instance directory `instance` (it does not exist yet)."""

    @abstractmethod
    def start_command(self, instance: str, launch: ProcessStart) -> Command:
        """Runs the server in the foreground: the launcher detaches it, sets limits, environment and affinity."""

    @abstractmethod
    def environment(self, instance: str, launch: ProcessStart) -> dict[str, str]:
        """The environment of the server process, `launch.environment` included."""

    @abstractmethod
    def log_path(self, instance: str) -> str | None:
        """The server's own log, None when it logs to its standard output."""

    def ready_command(self, instance: str) -> Command | None:
        """What is run on the server's own host to see whether it is ready; None where nothing is."""
        return None

    def unready(self, result: CommandResult) -> str:
        """What `ready_command` says that is missing yet, in words; "" when the server is ready."""
        return ""

    def settling_command(self, instance: str) -> Command | None:
        """What is run on the server's own host after the warm-up, so that its work is done before load is measured.

        None where there is no such work.
        """
        return None

    def gc_log_path(self, instance: str) -> str | None:
        """The log of its JVM's garbage collector (`agents.formats.gc_log`); None where the server keeps none."""
        return None

    @abstractmethod
    def effective_command(self, instance: str, pid: int) -> Command:
        """Reads what the running server really has (configuration files, final flags)."""

    @abstractmethod
    def parse_effective(self, output: bytes) -> Mapping[str, str]:
        """Flat `section.path` -> value from the output of `effective_command`."""

    def paired_threads(self, names: Sequence[str]) -> tuple[str, str] | None:
        """Of its threads' names, the busiest first, those of the request threads and of the one that polls for them.

        None where there is no such pair.
        """
        return None

    @abstractmethod
    def problems(self, log: str) -> tuple[str, ...]:
        """Settings that the server says it ignored or could not use, in plain words, from its log."""
