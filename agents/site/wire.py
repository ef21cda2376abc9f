"""What a site's worker and the centre say to each other. Both read it with these models, so that neither guesses."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field

from agents.base.model import Frozen
from agents.events import Role
from agents.plan import Plan
from agents.remote.address import Address

PROTOCOL = 3
"""Raised when a worker of before would misunderstand the centre, or the other way round."""

LONGEST_POLL_S = 25
"""A claim without a run is answered after that: proxies end what is silent for a minute."""

MOST_BATCH_BYTES = 64 << 20
"""Of events in one request: a single one may hold the output of a load tool."""

AGE = "age_s"
"""Stands beside the fields of an event in a batch: how long ago it happened. Workers of before do not say it."""

OLD_FENCE, GAP, DAMAGED = "fence", "first", "sha256"
"""The field that a 409 names: somebody newer has the run, events before these are missing, a file arrived damaged."""


class Held(Frozen):
    """A run that a worker works on, and the fence under which it was given to it."""

    run: int
    fence: int


class AcrossVersions(Frozen):
    """What workers and centres of all versions read, so that they tell each other which one they are."""

    model_config = ConfigDict(extra="ignore")

    protocol: int
    version: str = Field(default="", max_length=32)


class ClaimAsked(AcrossVersions):
    """`worker` is host:pid:thread, as the owners of runs are named; `slots`: how many runs it takes at once.

    `holds`: what the process works on meanwhile. It is a sign of life like a heartbeat, which may come later than this
    one after a cut of the link: none of these is given out as the run of a worker that is gone.
    """

    worker: str = Field(max_length=100, pattern=r"^[!-.0-~]+:[0-9]+:[0-9]+$")
    slots: int = Field(ge=1, le=1000)
    wait_s: float = Field(ge=0, le=LONGEST_POLL_S)
    holds: list[Held] = Field(default=[], max_length=1000)


class HostWay(Frozen):
    """Where a host answers and which key it must show; the key to log in with is the site's."""

    name: str
    address: str
    port: int
    user: str
    host_key: str
    jump: HostWay | None = None

    @classmethod
    def of(cls, address: Address) -> HostWay:
        jump = cls.of(address.jump) if address.jump else None
        return cls(
            name=address.name,
            address=address.address,
            port=address.port,
            user=address.user,
            host_key=address.host_key,
            jump=jump,
        )

    def plain(self) -> Address:
        jump = self.jump.plain() if self.jump else None
        return Address(self.name, self.address, self.port, self.user, self.host_key, jump)


class RunGiven(Frozen):
    """A run as the worker that claimed it needs it; `events` are those that leave a state, `last_seq` counts all.

    `ways`: by the names that the specification has for its hosts. `lease_s`: after that without a sign of life another
    worker may take it up. `work`: the run itself, or the way back of a finished one on the hosts of `roles`.
    """

    work: Literal["run", "restore"] = "run"
    id: int
    number: int
    key: str
    spec: dict[str, Any]
    fence: int
    attempts: int
    events: list[dict[str, Any]]
    last_seq: int
    ways: dict[str, HostWay]
    heartbeat_s: float
    lease_s: float
    patience_s: float
    deadman_s: int
    max_file_bytes: int
    installation_id: str
    installation_name: str
    checks_first: bool = False
    roles: list[Role] = []
    force: bool = False
    host_id: int = 0


class HostGiven(Frozen):
    """A host whose connection is to be tested. `asked_at` names the request: a later one wants a look of its own."""

    id: int
    asked_at: str
    way: HostWay
    serves: bool
    drives: bool
    servers: dict[str, str]
    installation_id: str
    installation_name: str


class DryRunGiven(Frozen):
    """Hosts to be read for a run that is not made, by their part in it."""

    id: int
    spec: dict[str, Any]
    ways: dict[Role, HostWay]


class Claim(Frozen):
    """The answer to a claim: at most one of them, and none when there is nothing to do now."""

    run: RunGiven | None = None
    host: HostGiven | None = None
    dry_run: DryRunGiven | None = None


class Finding(Frozen):
    """One thing that runs may use on a host, or miss there (`HostFinding`)."""

    topic: str
    result: Literal["there", "missing"]
    sentence: str
    command: str = ""


class HostSeen(Frozen):
    """What a look at a host brought (`Seen`), or why there was none: then `failure` is not empty."""

    asked_at: str
    failure: str = ""
    hint: str = ""
    offered: list[str] = []
    digest: str = ""
    profile: dict[str, str] | None = None
    unread: dict[str, str] | None = None
    access: dict[str, Any] | None = None
    clock_ahead_s: float | None = None
    remark: str = ""
    notes: list[str] = []
    findings: list[Finding] = []


class PlanRead(Frozen):
    """The plan with what the hosts say, or why there is none: then `failure` is not empty."""

    plan: Plan | None = None
    failure: str = ""
    hint: str = ""


class Stored(Frozen):
    """Up to which number events are stored, and whether a person asked for the end of the run."""

    last_seq: int
    cancelled: bool


class Clock(Frozen):
    """The centre's clock, in seconds since 1970."""

    unix_s: float


class HostsShown(Frozen):
    """What the hosts showed of themselves: role -> the fields of `Access`."""

    shown: dict[Role, dict[str, Any]]


class Admitted(Frozen):
    """Empty: the run may go on. Else who uses one of its machines, in words."""

    in_use: str = ""
    hint: str = ""


class Leftovers(Frozen):
    """What other runs had left on a host, one sentence each."""

    role: Role
    found: list[str]


class Reading(Frozen):
    """One check of a host before the run (`CanaryReading`)."""

    role: Role
    check: Literal["cpu", "disk", "network"]
    value: float | None
    problem: str = ""
    to: str = ""


class Readings(Frozen):
    """The checks of the run's hosts."""

    readings: list[Reading]


class Kept(Frozen):
    """The name of the file that was kept."""

    file: str


class End(Frozen):
    """How the work ended. `refused`: somebody refused the fence; `seen` is the greatest that the host has had."""

    how: Literal["conclude", "give_up", "put_back", "let_go", "refused", "restored"]
    message: str = ""
    hint: str = ""
    seen: int | None = None


class SiteShown(AcrossVersions):
    """Which site and team the token is for."""

    site: str
    team: str
