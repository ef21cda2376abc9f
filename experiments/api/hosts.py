"""Hosts of the team, their keys, state and grants."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.contrib.auth import get_user_model
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from ninja import Router
from ninja.params.functions import Query
from ninja.responses import Status

from experiments.api.experiment_shapes import HostCanaryOut
from experiments.api.finding import find_host, named_host
from experiments.api.host_shapes import (
    DrainIn,
    GrantIn,
    GrantsOut,
    HostChange,
    HostIn,
    HostOut,
    HostRemoved,
    KeyApproval,
    ProfileSeen,
    ReasonIn,
    RestoreIn,
)
from experiments.api.plumbing.auth import ADMIN, LAUNCH, READ, WRITE, member_of
from experiments.api.plumbing.conditional import CHANGE_EXTRA, READ_EXTRA, insist_on_match, tagged
from experiments.api.plumbing.idempotency import idempotent
from experiments.api.plumbing.paging import CURSOR, LIMIT, paged, rows_of_page
from experiments.api.plumbing.sparse import FIELDS, sparse
from experiments.api.several import several
from experiments.judging.evidence.host_canaries import host_history
from experiments.models import Host, Member, Role
from experiments.registry.errors import RequestError
from experiments.registry.hosts import inventory, removal
from experiments.registry.hosts.canaries import request_canaries
from experiments.registry.hosts.machines import sisters_of
from experiments.registry.hosts.reservations import holding_now
from experiments.registry.hosts.sites import find_site
from experiments.registry.teams.access import require
from experiments.running.restoring import requests

router = Router(auth=READ, tags=["hosts"])


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
