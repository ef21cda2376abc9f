"""RunSpec: THE schema of a run. The form, the API, the database and the runner all use this one."""

from __future__ import annotations

import hashlib
from typing import Annotated, Literal

from pydantic import Field, model_validator

from agents.base.cpuset import CpuSet
from agents.base.errors import PlanError
from agents.base.model import Frozen
from agents.drivers import AnyDriver
from agents.drivers.base.driver import Driver
from agents.drivers.shares import share_of
from agents.events import Role
from agents.recordings.tools import RecorderNames
from agents.servers import AnyServer
from agents.steps import AnyStep

Name = Annotated[str, Field(min_length=1, max_length=120)]
HostName = Annotated[str, Field(pattern=r"^[A-Za-z0-9._:\-\[\]]{1,253}$")]
MAX_PHASE_S = 24 * 3600
MAX_DRIVERS = 16
USER_PATTERN = r"^[A-Za-z_][A-Za-z0-9_.\-]{0,63}$"


class HostAddress(Frozen):
    """How to reach a host. `data_address` is where the driver host finds the server (a second network, often)."""

    name: Name
    address: HostName
    port: int = Field(22, ge=1, le=65535)
    user: str = Field(pattern=USER_PATTERN)
    host_key: str = Field(description="The pinned host key, as in known_hosts: 'ssh-ed25519 AAAA...'")
    data_address: HostName | Literal[""] = ""

    @property
    def target_address(self) -> str:
        return self.data_address or self.address


class Phase(Frozen):
    """One stretch of load. Only `measure` phases count."""

    name: Name
    kind: Literal["warm_up", "measure"]
    duration_s: int = Field(ge=1, le=MAX_PHASE_S)


class ApplicationDocument(Frozen):
    """What an application version holds: the server under test and how it is started."""

    description: str = Field("", max_length=4000)
    server: AnyServer


class WorkloadDocument(Frozen):
    """What a workload version holds: the load tool with its options, the path, and the phases."""

    description: str = Field("", max_length=4000)
    driver: AnyDriver
    scheme: Literal["http", "https"] = "http"
    path: str = Field("/", pattern=r"^/[^\s]*$", max_length=2000)
    phases: tuple[Phase, ...] = Field(max_length=20)
    cpus: CpuSet = ""
    nofile: int | None = Field(None, ge=64, le=10_000_000)
    recorders: RecorderNames = Field(
        (), description="nmon, mpstat or both, one per line: started on every host of the run, their files are kept"
    )

    @model_validator(mode="after")
    def _warm_up_then_measure(self) -> WorkloadDocument:
        kinds = [phase.kind for phase in self.phases]
        if kinds.count("measure") != 1 or kinds[-1] != "measure":
            raise ValueError("phases: give any number of warm_up phases and then exactly one measure phase")
        if self.driver.prepares and "warm_up" not in kinds:
            raise ValueError(f"phases: {self.driver.kind} makes its data in a warm_up phase; put one before measure")
        return self

    @model_validator(mode="after")
    def _a_page_is_for_http(self) -> WorkloadDocument:
        if self.driver.reaches != "http" and (self.path != "/" or self.scheme != "http"):
            raise ValueError(f"path and scheme: {self.driver.kind} asks for no page; leave them at / and http")
        return self

    def address_at(self, server: str) -> str:
        """What the tool is given of a server at `address:port`: the whole URL of the page, else where the port is."""
        if self.driver.reaches == "http":
            return f"{self.scheme}://{server}{self.path}"
        return f"tcp://{server}"

    @property
    def target(self) -> str:
        """What is loaded, for people: SUT:PORT stands for the server of a run."""
        return "the driver host itself" if self.driver.reaches == "own host" else self.address_at("SUT:PORT")

    @property
    def load_s(self) -> int:
        """Seconds of load in total."""
        return sum(phase.duration_s for phase in self.phases)


class Application(ApplicationDocument):
    name: Name
    version: int = Field(ge=1)


class Recipe(Frozen):
    """A recipe with its parameters filled in."""

    name: Name
    version: int = Field(ge=1)
    parameters: dict[str, bool | int | float | str] = {}
    steps: tuple[AnyStep, ...] = ()


class Workload(WorkloadDocument):
    name: Name
    version: int = Field(ge=1)
    own_rate_rps: float | None = Field(None, gt=0, description="The offered rate, where it is not the version's own")
    own_concurrency: int | None = Field(
        None, ge=1, description="The connections or users, where they are not the version's own"
    )

    @property
    def is_own_load(self) -> bool:
        """Whether the load was chosen for this run, in place of the version's."""
        return self.own_rate_rps is not None or self.own_concurrency is not None


class RunSpec(Frozen):
    """Everything that one run needs, frozen when it is launched. No secret in it."""

    application: Application
    recipe: Recipe
    workload: Workload
    sut: HostAddress
    drivers: tuple[HostAddress, ...] = Field(min_length=1, max_length=MAX_DRIVERS)
    monitor_interval_s: float = Field(1.0, ge=0.2, le=60)

    @model_validator(mode="after")
    def _bound_once(self) -> RunSpec:
        if self.application.server.instance_cpus and any(step.binds_server for step in self.recipe.steps):
            raise ValueError(
                "the recipe binds the server to CPUs, but the instances of the application have CPU sets of their own: "
                "take out the affinity step, or instance_cpus"
            )
        return self

    @model_validator(mode="after")
    def _drivers_share_the_load(self) -> RunSpec:
        if len({driver.name for driver in self.drivers}) < len(self.drivers):
            raise ValueError("drivers: each driver host can be named only once")
        try:
            self.tool  # noqa: B018 - made to see whether the load can be divided
        except PlanError as error:
            raise ValueError(error.message) from error
        return self

    @property
    def hosts(self) -> dict[Role, HostAddress]:
        """All hosts of the run by their part in it, the SUT first."""
        return {"sut": self.sut, **{driver_role(n): driver for n, driver in enumerate(self.drivers)}}

    @property
    def driver_roles(self) -> tuple[Role, ...]:
        return tuple(driver_role(number) for number in range(len(self.drivers)))

    @property
    def tool(self) -> Driver:
        """The load tool with the share of the load that each driver host puts on each instance of the server."""
        return share_of(self.workload.driver, len(self.drivers))

    def tool_of(self, phase: Phase) -> Driver:
        """The load tool as it works in that phase."""
        return self.tool if phase.kind == "measure" else self.tool.warming_up()

    @property
    def url(self) -> str:
        """What the driver requests; the first of them where the server has several instances."""
        return self.urls[0]

    @property
    def urls(self) -> tuple[str, ...]:
        """What the driver requests of each instance of the server, with a load tool of its own for each."""
        return tuple(self.workload.address_at(server) for server in self._servers)

    @property
    def ready_urls(self) -> tuple[str, ...]:
        """What each instance of the server is asked for until it is ready, which the load tool need not know."""
        path = self.application.server.ready.path
        return tuple(f"{self.workload.scheme}://{server}{path}" for server in self._servers)

    @property
    def _servers(self) -> tuple[str, ...]:
        """Address and port of each instance of the server, as the driver hosts reach it."""
        address = self.sut.target_address
        host = f"[{address}]" if ":" in address else address
        server = self.application.server
        return tuple(f"{host}:{port}" for port in range(server.port, server.port + server.count))


def driver_role(number: int) -> Role:
    """The part of the driver host with this number, counted from 0."""
    return f"driver-{number + 1}" if number else "driver"


def fingerprint(spec: RunSpec, *, driver_version: str, profile_digest: str) -> str:
    """Runs with one fingerprint form a series: same workload, tool, number of driver hosts, latency basis, SUT hardware
    and application.

    Recipe and labels vary inside a series: they are what teams compare.
    """
    driver, rate, hosts = spec.workload.driver, spec.workload.own_rate_rps, len(spec.drivers)
    count = spec.workload.own_concurrency
    parts = (
        f"{spec.workload.name}@{spec.workload.version}"
        + (f" at {rate:g}" if rate else "")
        + (f" with {count}" if count else ""),
        f"{driver.kind} {driver_version}" + (f" on {hosts} hosts" if hosts > 1 else ""),
        driver.latency_basis,
        profile_digest,
        f"{spec.application.name}@{spec.application.version}",
    )
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
