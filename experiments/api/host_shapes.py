"""What the API says of hosts, and what it takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, Self

from pydantic import BaseModel, Field

from agents.remote.address import HostKey
from experiments.api.choices import HostRoles, HostState
from experiments.api.shapes import Body, Flag, Labels, LinkTemplateOut, LinkTemplates, Whole
from experiments.models import Host, Member
from experiments.registry.hosts.host_keys import pinned_key, shown_keys
from experiments.registry.hosts.reservations import Hold
from experiments.registry.teams.access import may_launch_on

Roles = Literal["sut", "driver", "both"]


class CheckOut(BaseModel):
    """How the last one of something that a worker does went."""

    state: str = Field(
        description="pending, ok or failed (of a restore: pending, again, proven or failed); empty when there was none"
    )
    message: str = ""
    hint: str = ""
    at: datetime | None = None

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Self:
        return cls(**stored) if stored else cls(state="")


class FindingOut(BaseModel):
    """One thing that runs may use on the host."""

    topic: str = Field(description="root, linger, tomcat, java, load_tool or way")
    result: Literal["there", "missing"]
    sentence: str
    command: str = Field(description="What mends it on the host; empty where nothing is to be done")


class HostCheckOut(CheckOut):
    findings: list[FindingOut] = Field([], description="What the host has for runs; what is missing comes first")


class KeyOut(BaseModel):
    """A key by which a host proves who it is."""

    type: str = Field(description="ED25519, ECDSA or RSA, as ssh-keygen -l prints it")
    fingerprint: str
    file: str = Field(description="Where its public half is on the host, unless sshd_config says otherwise")

    @classmethod
    def of(cls, key: HostKey) -> KeyOut:
        return cls(type=key.kind, fingerprint=key.fingerprint, file=key.file)


class HostOut(BaseModel):
    name: str
    address: str
    port: int
    user: str
    data_address: str
    jump: str | None
    site: str = Field(description="The site whose workers reach it; empty = the central one")
    roles: HostRoles
    labels: dict[str, str]
    link_templates: list[LinkTemplateOut] = Field(
        [], description="Links to other tools, on the page of each run that uses the host"
    )
    state: HostState
    state_reason: str
    differences: list[str] = Field(description="What is not as before on a dirty host")
    dirty_run: int | None = Field(description="Number of the run that left it dirty")
    restore: CheckOut = Field(description="The last attempt to put a dirty host back: pending, again, proven or failed")
    public_key: str = Field(description="The line for authorized_keys on the host")
    host_key_fingerprint: str | None
    host_key: KeyOut | None = Field(description="The approved key")
    offered_fingerprint: str | None = Field(description="The first of `offered_keys`")
    offered_keys: list[KeyOut] = Field(
        description="The keys that wait for approval: of a new host, or of one that no longer shows the approved key"
    )
    host_key_changed: bool = Field(
        description="Whether it showed other keys than the approved one: nobody logs in until one is approved"
    )
    profile: str | None = Field(description="Digest of the hardware profile")
    leased_by: int | None = Field(description="Number of the run that holds the host; a drained host ends it first")
    same_machine_as: list[str] = Field(
        description="Other hosts of the team that are the same machine: one run at a time uses them"
    )
    shared_with_another_team: bool = Field(description="Whether a host of another team is the same machine")
    reserved_by: str | None = Field(description="Member whose runs alone start here now")
    reserved_until: datetime | None
    last_seen_at: datetime | None
    check: HostCheckOut
    canaries: CheckOut = Field(description="The last checks of how fast it is that somebody asked for")
    may_launch: bool

    @classmethod
    def of(cls, host: Host, member: Member, hold: Hold | None, sisters: Sequence[Host]) -> HostOut:
        pinned, shown = pinned_key(host), shown_keys(host.offered_host_key)
        return cls(
            name=host.name,
            address=host.address,
            port=host.port,
            user=host.user,
            data_address=host.data_address,
            jump=host.jump.name if host.jump else None,
            site=host.site_name,
            roles=host.roles,
            labels=host.labels,
            link_templates=[LinkTemplateOut(**one) for one in host.link_templates],
            state=host.state,
            state_reason=host.state_reason,
            differences=host.differences,
            dirty_run=host.dirty_run.number if host.dirty_run else None,
            restore=CheckOut.of(host.last_restore),
            public_key=host.public_key,
            host_key_fingerprint=pinned.fingerprint if pinned else None,
            host_key=KeyOut.of(pinned) if pinned else None,
            offered_fingerprint=shown[0].fingerprint if shown else None,
            offered_keys=[KeyOut.of(key) for key in shown],
            host_key_changed=pinned is not None and bool(shown),
            profile=host.profile.digest if host.profile else None,
            leased_by=host.leased_by.number if host.leased_by else None,
            same_machine_as=[one.name for one in sisters if one.team_id == host.team_id],
            shared_with_another_team=any(one.team_id != host.team_id for one in sisters),
            reserved_by=hold.username if hold else None,
            reserved_until=hold.until if hold else None,
            last_seen_at=host.last_seen_at,
            check=HostCheckOut.of(host.last_check),
            canaries=CheckOut.of(host.last_canaries),
            may_launch=may_launch_on(member, host),
        )


class HostIn(Body):
    name: str = Field(min_length=1, max_length=120)
    address: str = Field(min_length=1, max_length=253)
    port: Whole = Field(22, ge=1, le=65535)
    user: str = Field(min_length=1, max_length=64)
    roles: Roles = "both"
    data_address: str = Field("", max_length=253)
    jump: str | None = Field(None, max_length=120)
    site: str = Field("", max_length=40, description="The site whose workers reach it; empty = the central one")
    labels: Labels = {}
    link_templates: LinkTemplates = []
    private_key: str | None = Field(
        None, max_length=20_000, description="OpenSSH or PEM without a passphrase; left out, a pair is made"
    )


class HostChange(Body):
    """What is left out stays."""

    name: str | None = Field(None, min_length=1, max_length=120)
    address: str | None = Field(None, min_length=1, max_length=253)
    port: Whole | None = Field(None, ge=1, le=65535)
    user: str | None = Field(None, min_length=1, max_length=64)
    roles: Roles | None = None
    data_address: str | None = Field(None, max_length=253)
    jump: str | None = Field(None, max_length=120)
    site: str | None = Field(None, max_length=40, description="Empty = the central one")
    labels: Labels | None = None
    link_templates: LinkTemplates | None = None
    private_key: str | None = Field(None, max_length=20_000)


class HostRemoved(BaseModel):
    removed: str


class KeyApproval(Body):
    fingerprint: str = Field(max_length=100, description="SHA256:..., as the host's console shows it")


class DrainIn(Body):
    drained: Flag


class RestoreIn(Body):
    force: Flag = Field(False, description="Also put back what somebody else has changed since")


class ReasonIn(Body):
    reason: str = Field(min_length=1, max_length=1000)


class GrantIn(Body):
    user: str = Field(min_length=1, max_length=150)
    granted: Flag = True


class GrantsOut(BaseModel):
    users: list[str] = Field(description="Who may launch here, apart from admins")


class ProfileSeen(BaseModel):
    digest: str
    first_seen_at: datetime
    last_seen_at: datetime
    facts: dict[str, str]
