"""Hosts of the team, their keys, state and grants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Literal, Self

from django.contrib.auth import get_user_model
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from ninja import Router
from ninja.params.functions import Query
from ninja.responses import Status
from pydantic import BaseModel, Field

from agents.remote.address import HostKey
from experiments.api.choices import HostRoles, HostState
from experiments.api.experiment_shapes import HostCanaryOut
from experiments.api.finding import find_host, named_host
from experiments.api.plumbing.auth import ADMIN, LAUNCH, READ, WRITE, member_of
from experiments.api.plumbing.conditional import CHANGE_EXTRA, READ_EXTRA, insist_on_match, tagged
from experiments.api.plumbing.idempotency import idempotent
from experiments.api.plumbing.paging import CURSOR, LIMIT, paged, rows_of_page
from experiments.api.plumbing.several import several
from experiments.api.plumbing.sparse import FIELDS, sparse
from experiments.api.shapes import Body, Flag, Labels, LinkTemplateOut, LinkTemplates, Whole
from experiments.judging.evidence.host_canaries import host_history
from experiments.models import Host, Member, Role
from experiments.registry.errors import RequestError
from experiments.registry.hosts import inventory, removal
from experiments.registry.hosts.canaries import request_canaries
from experiments.registry.hosts.host_keys import pinned_key, shown_keys
from experiments.registry.hosts.machines import sisters_of
from experiments.registry.hosts.reservations import Hold, holding_now
from experiments.registry.hosts.sites import find_site
from experiments.registry.teams.access import may_launch_on, require
from experiments.running.restoring import requests

router = Router(auth=READ, tags=["hosts"])

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


@router.get("", response=list[HostOut])
def list_hosts(
    request: HttpRequest,
    name__in: str = Query("", max_length=4000, description="One of these, with commas between"),
    state__in: str = Query("", max_length=200, description="One of these, with commas between"),
    roles__in: str = Query("", max_length=200, description="One of these, with commas between"),
    fields: str = FIELDS,
    cursor: int = CURSOR,
    limit: int = LIMIT,
) -> Any:
    """All hosts of the team."""
    member = member_of(request)
    given = (
        ("name__in", name__in, ()),
        ("state__in", state__in, Host.State.values),
        ("roles__in", roles__in, Host.Roles.values),
    )
    wanted = {key: several(text, key, known) for key, text, known in given if text}
    found = list(Host.objects.for_team(member.team).with_state().filter(**wanted))
    hosts = rows_of_page(request, found, cursor, limit)
    holds, sisters = holding_now(hosts), sisters_of(hosts)
    shown = [HostOut.of(host, member, holds.get(host.pk), sisters.of(host.pk)) for host in hosts]
    return sparse(shown, HostOut, fields)


@router.post("", response={201: HostOut}, auth=WRITE)
@idempotent
def create_host(request: HttpRequest, payload: HostIn) -> Status[HostOut]:
    """A new host. Put its `public_key` into authorized_keys there, request a check, then approve the host's key."""
    member = member_of(request)
    given = payload.model_dump(exclude={"jump", "site"})
    jump = named_host(member, payload.jump, field="jump") if payload.jump else None
    host = inventory.add_host(member, **given, jump=jump, site=find_site(payload.site))
    return Status(201, _shown(host, member))


@router.get("/{name}", response=HostOut, openapi_extra=READ_EXTRA)
def get_host(request: HttpRequest, name: str) -> HttpResponse:
    """One host, with its ETag."""
    return tagged(request, _shown(find_host(member_of(request), name), member_of(request)))


@router.patch("/{name}", response=HostOut, auth=WRITE, openapi_extra=CHANGE_EXTRA)
def change_host(request: HttpRequest, name: str, payload: HostChange) -> HttpResponse:
    """Change what is named. Another address or port needs another approval of the host's key."""
    member = member_of(request)
    changes = payload.model_dump(exclude_unset=True)
    private_key = changes.pop("private_key", None)
    for key, value in changes.items():
        if value is None and key != "jump":
            raise RequestError(f"{key} cannot be null; leave it out to keep it.", field=key)
    if "jump" in changes:
        changes["jump"] = named_host(member, changes["jump"], field="jump") if changes["jump"] else None
    if "site" in changes:
        changes["site"] = find_site(changes["site"])
    with _as_seen(request, name) as host:
        changed = inventory.update_host(member, host, private_key=private_key, **changes)
    return tagged(request, _shown(find_host(member, changed.name), member))


@router.delete("/{name}", response=HostRemoved, auth=WRITE)
def remove_host(request: HttpRequest, name: str) -> HostRemoved:
    """Remove a host that nothing was measured on; 409 for any other, which can be drained."""
    member = member_of(request)
    removal.remove_host(member, find_host(member, name))
    return HostRemoved(removed=name)


@router.post("/{name}/check", response={202: HostOut}, auth=LAUNCH)
@idempotent
def check_host(request: HttpRequest, name: str) -> Status[HostOut]:
    """Test the connection; `check` says how it went once a worker has done it."""
    member = member_of(request)
    host = find_host(member, name)
    inventory.request_check(member, host)
    return Status(202, _shown(host, member))


@router.get("/{name}/canaries", response=list[HostCanaryOut])
@paged
def list_host_canaries(request: HttpRequest, name: str) -> list[HostCanaryOut]:
    """The newest 60 short checks of the host, the newest first, each against those before it."""
    return [HostCanaryOut.of(one) for one in host_history(find_host(member_of(request), name))]


@router.post("/{name}/canaries", response={202: HostOut}, auth=LAUNCH)
@idempotent
def check_host_speed(request: HttpRequest, name: str) -> Status[HostOut]:
    """Check how fast CPUs and disk of a free host are; `canaries` says how it went once a worker has done it."""
    member = member_of(request)
    host = find_host(member, name)
    request_canaries(member, host)
    return Status(202, _shown(find_host(member, name), member))


@router.post("/{name}/approve-key", response=HostOut, auth=WRITE, openapi_extra=CHANGE_EXTRA)
def approve_host_key(request: HttpRequest, name: str, payload: KeyApproval) -> HttpResponse:
    """Pin the offered key of this fingerprint. It takes the place of the approved one, where there is one."""
    member = member_of(request)
    with _as_seen(request, name) as host:
        inventory.approve_key(member, host, payload.fingerprint)
    return tagged(request, _shown(find_host(member, name), member))


@router.post("/{name}/drain", response=HostOut, auth=WRITE, openapi_extra=CHANGE_EXTRA)
def drain_host(request: HttpRequest, name: str, payload: DrainIn) -> HttpResponse:
    """Take the host out of service, or put it back."""
    member = member_of(request)
    with _as_seen(request, name) as host:
        inventory.set_drained(member, host, payload.drained)
    return tagged(request, _shown(find_host(member, name), member))


@router.post("/{name}/restore", response={202: HostOut}, auth=WRITE)
@idempotent
def restore_host(request: HttpRequest, name: str, payload: RestoreIn) -> Status[HostOut]:
    """Put a dirty host back once more; `restore` says how it went once a worker has done it."""
    member = member_of(request)
    requests.request_restore(member, find_host(member, name), force=payload.force)
    return Status(202, _shown(find_host(member, name), member))


@router.post("/{name}/clear-dirty", response=HostOut, auth=WRITE, openapi_extra=CHANGE_EXTRA)
def clear_dirty_host(request: HttpRequest, name: str, payload: ReasonIn) -> HttpResponse:
    """Say that a dirty host is as it should be again, and why."""
    member = member_of(request)
    with _as_seen(request, name) as host:
        inventory.clear_dirty(member, host, payload.reason)
    return tagged(request, _shown(find_host(member, name), member))


@router.post("/{name}/grants", response=GrantsOut, auth=ADMIN)
def grant_host(request: HttpRequest, name: str, payload: GrantIn) -> GrantsOut:
    """Let a member launch on the host, or no longer (`granted: false`)."""
    member = member_of(request)
    host = find_host(member, name)
    key = f"user__{get_user_model().USERNAME_FIELD}"
    other = Member.objects.select_related("user").filter(team=member.team, **{key: payload.user}).first()
    change = inventory.grant if payload.granted else inventory.revoke
    if other is None:
        require(member, Role.ADMIN)
        raise RequestError(f"There is no member {payload.user!r}.", field="user")
    change(member, host, other)
    granted = host.grants.select_related("member__user").order_by("id")
    return GrantsOut(users=[grant.member.user.get_username() for grant in granted])


@router.get("/{name}/profiles", response=list[ProfileSeen])
@paged
def list_host_profiles(request: HttpRequest, name: str) -> list[ProfileSeen]:
    """The hardware that the host showed over time, the newest first."""
    history = find_host(member_of(request), name).profile_history.select_related("profile")[:200]
    return [
        ProfileSeen(
            digest=seen.profile.digest,
            first_seen_at=seen.first_seen_at,
            last_seen_at=seen.last_seen_at,
            facts=seen.profile.facts,
        )
        for seen in history
    ]


@contextmanager
def _as_seen(request: HttpRequest, name: str) -> Iterator[Host]:
    """The host for a change in one transaction, locked when the client says by If-Match what it has seen."""
    member = member_of(request)
    with transaction.atomic():
        host = find_host(member, name)
        if "If-Match" in request.headers:
            Host.objects.select_for_update(of=("self",)).get(pk=host.pk)
            host = find_host(member, name)
            insist_on_match(request, _shown(host, member))
        yield host


def _shown(host: Host, member: Member) -> HostOut:
    return HostOut.of(host, member, holding_now([host]).get(host.pk), sisters_of([host]).of(host.pk))
