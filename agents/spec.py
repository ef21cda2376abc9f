"""RunSpec: THE schema of a run. The form, the API, the database and the runner all use this one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from agents.base.cpuset import CpuSet
from agents.base.errors import PlanError
from agents.base.model import Frozen
from agents.drivers import AnyDriver
from agents.drivers.base.driver import Driver
from agents.drivers.shares import share_of
from agents.events import Role
from agents.profilers.choosing import Chosen, ProfilerNames, profilers_for, why_not
from agents.recordings.tools import RecorderNames
from agents.servers import AnyServer
from agents.servers.base.server import Server
from agents.steps import AnyStep
from agents.system import (
    LOADED,
    MAX_MEMBERS,
    MemberRole,
    MemberServer,
    OwnRole,
    Places,
    awaited,
    insist_on_a_system,
    places_of,
    start_order,
    with_places,
)

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


def _is_empty(value: Any) -> bool:
    return not value


class ApplicationDocument(Frozen):
    """What an application version holds: the server under test and how it is started.

    Of a system also its further `members`, each a server of its own; `server` is the one that is loaded, and `role` is
    what it is called among them. `${ROLE.address}` and `${ROLE.port}` in any of them are where that member is reached.
    """

    description: str = Field("", max_length=4000)
    server: AnyServer
    role: OwnRole = Field(
        "", exclude_if=_is_empty, description="What the server that is loaded is called among the members, such as web."
    )
    members: tuple[MemberServer, ...] = Field(
        (),
        max_length=MAX_MEMBERS,
        exclude_if=_is_empty,
        description="Further servers that a run needs, each with a role, on hosts that are chosen at launch. "
        "${database.address} and ${database.port} tell one where another is reached.",
    )

    @model_validator(mode="after")
    def _is_a_system(self) -> ApplicationDocument:
        insist_on_a_system(self.role, self.server, self.members)
        return self

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles of the further members, in their order."""
        return tuple(member.role for member in self.members)

    def placed(self, addresses: Mapping[str, str]) -> ApplicationDocument:
        """The same where its members are reached at these addresses of their hosts (role -> address, `sut` the loaded
        server's). ValueError for what does not fit any more with them."""
        if not self.members:
            return self
        places = self.places(addresses)
        body = self.model_dump(mode="json", by_alias=True)
        return type(self).model_validate(with_places(body, places))

    def places(self, addresses: Mapping[str, str]) -> Places:
        """Role -> address and port of each member; none of a single server."""
        return places_of(self.role, self.server, self.members, addresses) if self.members else {}


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
    profilers: ProfilerNames = Field(
        (),
        exclude_if=_is_empty,
        description="Profilers, one per line, that an experiment with this workload takes when it names none itself: "
        "each of its blocks then has a profiled twin of each run, which counts nowhere.",
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


class MemberPlace(Frozen):
    """Where a member of the application runs, and the steps of the recipe that are meant for it."""

    role: MemberRole
    host: HostAddress
    steps: tuple[AnyStep, ...] = ()


@dataclass(frozen=True)
class Part:
    """A server of a run: the one that is loaded (role `sut`, place 0), or a further member of its system.

    `waits_for` are the roles that must be ready before it starts, `asked_from` the hosts that see whether it is ready.
    """

    role: Role
    title: str
    place: int
    server: Server
    steps: tuple[AnyStep, ...]
    host: HostAddress
    ready_urls: tuple[str, ...]
    waits_for: tuple[Role, ...] = ()
    asked_from: tuple[Role, ...] = ()
    profilers: tuple[Chosen, ...] = ()


class RunSpec(Frozen):
    """Everything that one run needs, frozen when it is launched. No secret in it.

    `members` are the places of the application's further members, in their order. With `profilers` it is the twin of a
    run that is not profiled: it counts in no verdict, trend, gate or baseline.
    """

    application: Application
    recipe: Recipe
    workload: Workload
    sut: HostAddress
    members: tuple[MemberPlace, ...] = Field((), max_length=MAX_MEMBERS, exclude_if=_is_empty)
    drivers: tuple[HostAddress, ...] = Field(min_length=1, max_length=MAX_DRIVERS)
    monitor_interval_s: float = Field(1.0, ge=0.2, le=60)
    profilers: ProfilerNames = Field((), exclude_if=_is_empty)

    @model_validator(mode="after")
    def _every_member_has_its_place(self) -> RunSpec:
        if self.application.roles != tuple(member.role for member in self.members):
            wanted = ", ".join(self.application.roles) or "none"
            raise ValueError(f"members: name a host for each member of the application, in its order: {wanted}")
        taken: dict[tuple[str, int], str] = {}
        for part in self.parts:
            for port in range(part.server.port, part.server.port + part.server.count):
                other = taken.setdefault((part.host.name, port), part.title)
                if other != part.title:
                    raise ValueError(f"members: {other} and {part.title} both want port {port} of {part.host.name}")
        return self

    @model_validator(mode="after")
    def _bound_once(self) -> RunSpec:
        for part in self.parts:
            if part.server.instance_cpus and any(step.binds_server for step in part.steps):
                raise ValueError(
                    "the recipe binds the server to CPUs, but the instances of the application have CPU sets of their "
                    "own: take out the affinity step, or instance_cpus"
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

    @model_validator(mode="after")
    def _can_be_profiled(self) -> RunSpec:
        servers = [(part.server.kind, part.server.runtime) for part in self.parts]
        if self.profilers and (why := why_not(self.profilers, servers)):
            raise ValueError(f"profilers: {why}")
        return self

    @property
    def hosts(self) -> dict[Role, HostAddress]:
        """All hosts of the run by their part in it, the SUT first, then its members."""
        members = {member.role: member.host for member in self.members}
        return {"sut": self.sut, **members, **{driver_role(n): driver for n, driver in enumerate(self.drivers)}}

    @property
    def parts(self) -> tuple[Part, ...]:
        """The servers of the run: the one that is loaded, and the further members in the application's order."""
        own, members = self.application, self.application.members
        waits = awaited(own.role, members)
        askers = {role: tuple(other for other in waits if role in waits[other]) or (LOADED,) for role in waits}
        loaded = Part(
            LOADED,
            own.role or LOADED,
            0,
            own.server,
            self.recipe.steps,
            self.sut,
            self.ready_urls,
            waits[LOADED],
            self.driver_roles,
            profilers_for(self.profilers, own.server.runtime),
        )
        return (
            loaded,
            *(
                Part(
                    member.role,
                    member.role,
                    number,
                    member.server,
                    place.steps,
                    place.host,
                    _pages(member.server.scheme, place.host, member.server),
                    waits[member.role],
                    askers[member.role],
                    profilers_for(self.profilers, member.server.runtime),
                )
                for number, (member, place) in enumerate(zip(members, self.members, strict=True), start=1)
            ),
        )

    def part(self, role: Role) -> Part:
        """The server with this role. KeyError when the role is that of a driver host."""
        return {part.role: part for part in self.parts}[role]

    @property
    def parts_in_order(self) -> tuple[Part, ...]:
        """The servers in the order in which they start: each behind those that it waits for."""
        by_role = {part.role: part for part in self.parts}
        return tuple(by_role[role] for role in start_order(self.application.role, self.application.members))

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
        return _pages(self.workload.scheme, self.sut, self.application.server)

    @property
    def _servers(self) -> tuple[str, ...]:
        """Address and port of each instance of the server, as the driver hosts reach it."""
        return _where(self.sut, self.application.server)


def _pages(scheme: str, host: HostAddress, server: Server) -> tuple[str, ...]:
    """What each instance of a server is asked for until it is ready."""
    return tuple(f"{scheme}://{at}{server.ready.path}" for at in _where(host, server))


def _where(host: HostAddress, server: Server) -> tuple[str, ...]:
    """Address and port of each instance of a server."""
    address = host.target_address
    name = f"[{address}]" if ":" in address else address
    return tuple(f"{name}:{port}" for port in range(server.port, server.port + server.count))


def driver_role(number: int) -> Role:
    """The part of the driver host with this number, counted from 0."""
    return f"driver-{number + 1}" if number else "driver"
