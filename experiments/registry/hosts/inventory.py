"""Hosts: adding them, approving their keys, and who may launch on them. Connecting happens in workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from django.db import IntegrityError, transaction
from pydantic import ValidationError

from agents.base.model import first_problem
from agents.remote.address import fingerprint, new_key_pair, plain_address
from agents.running.outfit import HostFinding
from agents.spec import HostAddress
from experiments.models import Host, HostGrant, Member, Role, Site
from experiments.registry.database_clock import database_now
from experiments.registry.errors import Conflict, RequestError
from experiments.registry.hosts.denied import denial
from experiments.registry.hosts.host_keys import connect_args, key_row, pinned_key, public_half, shown_keys
from experiments.registry.hosts.keys import seal
from experiments.registry.hosts.machines import forget, lock_machines, settle
from experiments.registry.hosts.quarantine import NOT_APPROVED, back_in_service, refuse_while_restoring
from experiments.registry.naming import check_address_name
from experiments.registry.notes.labels import check_labels
from experiments.registry.teams.access import require
from experiments.registry.teams.audit import record
from experiments.registry.teams.link_templates import check_templates
from experiments.registry.teams.quotas import admit_host
from experiments.registry.workers.outbox import CHECK_HOST, send

MAX_REASON = 1000
"""Letters of why a host is clean again, as in the API."""

__all__ = [
    "add_host",
    "approve_key",
    "clear_dirty",
    "connect_args",
    "fingerprint",
    "grant",
    "request_check",
    "revoke",
    "set_drained",
    "update_host",
]

_CHANGEABLE = (
    *("name", "address", "port", "user", "roles", "data_address", "jump", "labels", "link_templates"),
    "site",
)
_NO_KEY_YET = "ssh-ed25519 none"  # HostAddress wants a key; a host that is only being described has none


def add_host(
    member: Member,
    *,
    name: str,
    address: str,
    port: int,
    user: str,
    private_key: str | None = None,
    roles: str,
    data_address: str = "",
    jump: Host | None = None,
    labels: Mapping[str, str] | None = None,
    site: Site | None = None,
    link_templates: Sequence[Mapping[str, str]] = (),
) -> Host:
    """A new host of the team, its key encrypted. Without `private_key` a pair is made: put `public_key` on the host.

    At a site whose keys stay there none is made, and none may be given.
    """
    require(member, Role.EDITOR)
    check_address_name(name.strip(), "A host")
    host = Host(
        team_id=member.team_id,
        name=name.strip(),
        address=address.strip(),
        port=port,
        user=user.strip(),
        roles=roles,
        data_address=data_address.strip(),
        jump=jump,
        labels=check_labels(labels or {}),
        site=site,
        link_templates=check_templates(link_templates),
    )
    _check(host)
    keys_stay = site is not None and site.keys_stay
    if private_key is not None:
        _insist_on_own_key(site)
        host.public_key = public_half(private_key)
    elif not keys_stay:
        private_key, host.public_key = new_key_pair(f"benchhub {host.name}")
    try:
        with transaction.atomic():
            admit_host(member.team)
            host.save()
            if private_key is not None:
                host.private_key = seal(private_key, row=key_row(host))
                host.save(update_fields=["private_key"])
            settle(host)
            record(member, "host.add", f"host {host.name}", after=described(host))
    except IntegrityError as error:
        raise Conflict(f"There is a host named {host.name} already.", field="name") from error
    return host


def update_host(member: Member, host: Host, *, private_key: str | None = None, **changes: Any) -> Host:
    """Change what is named in `changes`: any of _CHANGEABLE.

    Another address or port is another machine until proven equal: its host key must be approved again. At another site
    the same address may lead to another machine; there the approved key says whether it does.
    """
    require(member, Role.EDITOR)
    unknown = sorted(set(changes) - set(_CHANGEABLE))
    if unknown:
        raise RequestError(f"A host has no field {unknown[0]} that can be changed.", field=unknown[0])
    if "labels" in changes:
        changes["labels"] = check_labels(changes["labels"])
    if "link_templates" in changes:
        changes["link_templates"] = check_templates(changes["link_templates"])
    try:
        with transaction.atomic():
            lock_machines()
            host = Host.objects.select_for_update(of=("self",)).get(pk=host.pk)
            before = described(host)
            if "name" in changes and changes["name"].strip() != host.name:
                check_address_name(changes["name"].strip(), "A host")
            place, site_id = (_stored(host.address), host.port), host.site_id
            for key, value in changes.items():
                setattr(host, key, value.strip() if isinstance(value, str) else value)
            _check(host)
            after = described(host)
            if place != (host.address, host.port):
                if host.leased_by_id is not None:
                    raise Conflict(f"A run uses {before['name']} and must put it back; wait for its end.")
                host.host_key = host.offered_host_key = ""
                host.last_check = {}  # it was of the other address
                forget(host)
                if host.state not in (Host.State.DIRTY, Host.State.DRAINED):
                    host.state, host.state_reason = Host.State.NEW, NOT_APPROVED
            elif site_id != host.site_id:
                if host.leased_by_id is not None:
                    raise Conflict(f"A run uses {before['name']} and must put it back; wait for its end.")
                host.last_check = {}  # another worker looks from another place
                forget(host)
            if private_key is not None:
                _insist_on_own_key(host.site)
                host.public_key = public_half(private_key)
                host.private_key = seal(private_key, row=key_row(host))
            elif host.site is not None and host.site.keys_stay:
                host.public_key, host.private_key = "", b""
            host.save()
            settle(host)
            record(member, "host.update", f"host {host.name}", before=before, after=after)
    except IntegrityError as error:
        raise Conflict(f"There is a host named {host.name} already.", field="name") from error
    return host


def request_check(member: Member, host: Host) -> None:
    """Ask a worker to test the connection; `host.last_check` says how it went."""
    require(member, Role.LAUNCHER)
    host_id, site = host.pk, host.site_name
    with transaction.atomic():
        host.last_check = check_state("pending", "Waiting for a worker.")
        host.save(update_fields=["last_check"])
        transaction.on_commit(lambda: send(CHECK_HOST, host_id, site), robust=True)


def approve_key(member: Member, host: Host, fingerprint_text: str) -> None:
    """Pin the key of this fingerprint (`SHA256:...`), one of those that the host showed.

    It may take the place of another one, after the host was installed anew: until then nobody logs in to it.
    """
    require(member, Role.EDITOR)
    with transaction.atomic():
        locked = Host.objects.select_for_update(of=("self",)).get(pk=host.pk)
        pinned, shown = pinned_key(locked), shown_keys(locked.offered_host_key)
        if not shown:
            raise Conflict(
                f"{locked.name} shows the approved key {pinned}; there is no other to approve."
                if pinned and locked.last_check.get("state") == "ok"
                else f"{locked.name} has not shown a key that is to be approved; test the connection first."
            )
        chosen = next((key for key in shown if key.fingerprint == fingerprint_text.strip()), None)
        if chosen is None:
            offered = ", ".join(map(str, shown))
            raise RequestError(
                f"The host shows {offered}; none has the fingerprint that you approve.", field="fingerprint"
            )
        if pinned and locked.leased_by_id is not None:
            raise Conflict(f"A run uses {locked.name} and must put it back; wait for its end.")
        locked.host_key, locked.offered_host_key = chosen.line, ""
        if locked.state in (Host.State.NEW, Host.State.UNREACHABLE):
            locked.state, locked.state_reason = Host.State.READY, ""
        locked.save(update_fields=["host_key", "offered_host_key", "state", "state_reason"])
        record(
            member,
            "host.approve_key",
            f"host {locked.name}",
            before={"fingerprint": pinned.fingerprint if pinned else None},
            after={"fingerprint": chosen.fingerprint},
        )
        request_check(member, locked)
    host.refresh_from_db()


def set_drained(member: Member, host: Host, drained: bool) -> None:
    """Take a host out of service, or put it back. A run that holds it goes on to its end."""
    require(member, Role.EDITOR)
    with transaction.atomic():
        locked = Host.objects.select_for_update(of=("self",)).get(pk=host.pk)
        before = locked.state
        if drained and locked.state in (Host.State.READY, Host.State.UNREACHABLE):
            locked.state, locked.state_reason = Host.State.DRAINED, f"Drained by {member.user.get_username()}."
        elif not drained and locked.state == Host.State.DRAINED:
            back_in_service(locked)
        elif (locked.state == Host.State.DRAINED) != drained:
            raise Conflict(f"{locked.name} is {locked.get_state_display()}; that must be solved first.")
        locked.save(update_fields=["state", "state_reason"])
        if before != locked.state:
            record(member, "host.state", f"host {locked.name}", before={"state": before}, after={"state": locked.state})
    host.refresh_from_db()


def clear_dirty(member: Member, host: Host, reason: str) -> None:
    """Say that a host which could not be proven restored is as it should be. The reason goes into the audit trail."""
    require(member, Role.EDITOR)
    if not reason.strip():
        raise RequestError("Say why the host is clean again.", field="reason")
    if len(reason) > MAX_REASON:
        raise RequestError(f"The reason has at most {MAX_REASON} characters.", field="reason")
    with transaction.atomic():
        locked = Host.objects.select_for_update(of=("self",)).get(pk=host.pk)
        if locked.state != Host.State.DIRTY:
            raise Conflict(f"{locked.name} is not dirty.")
        refuse_while_restoring(locked)
        before = {"state": locked.state, "reason": locked.state_reason}
        back_in_service(locked)
        locked.last_restore = {}
        locked.save()
        after = {"state": locked.state, "reason": reason.strip()}
        record(member, "host.clear_dirty", f"host {locked.name}", before=before, after=after)
    host.refresh_from_db()


def grant(member: Member, host: Host, other: Member) -> None:
    """Let another member launch on the host."""
    require(member, Role.ADMIN)
    if {host.team_id, other.team_id} != {member.team_id}:
        raise RequestError("The member and the host belong to different teams.", field="member")
    with transaction.atomic():
        _, created = HostGrant.objects.get_or_create(host=host, member=other)
        if created:
            record(member, "host.grant", f"host {host.name}", after={"user": other.user.get_username()})


def revoke(member: Member, host: Host, other: Member) -> None:
    """Take the grant back; runs that are queued stay queued."""
    require(member, Role.ADMIN)
    with transaction.atomic():
        deleted, _ = HostGrant.objects.filter(host=host, member=other, host__team_id=member.team_id).delete()
        if deleted:
            record(member, "host.revoke", f"host {host.name}", before={"user": other.user.get_username()})


def described(host: Host) -> dict[str, Any]:
    """What the audit trail keeps of a host; never a private key."""
    return {
        "name": host.name,
        "address": host.address,
        "port": host.port,
        "user": host.user,
        "roles": host.roles,
        "data_address": host.data_address,
        "jump": host.jump.name if host.jump else None,
        "site": host.site_name,
        "labels": host.labels,
        "link_templates": host.link_templates,
        "public_key": host.public_key,
    }


def _insist_on_own_key(site: Site | None) -> None:
    """RequestError when the database is not to have the key."""
    if site is not None and site.keys_stay:
        raise RequestError(
            f"The keys of site {site.name} stay there: put this one into the --keys directory of its worker, and "
            "give none here.",
            field="private_key",
        )


def _stored(address: str) -> str:
    """As it would be stored today: another way to write it does not make another machine."""
    try:
        return plain_address(address)
    except ValueError:
        return address


def _check(host: Host) -> None:
    """RequestError naming the field that is wrong. Addresses are put as they are stored."""
    for field in ("address", "data_address"):
        try:
            setattr(host, field, plain_address(getattr(host, field)))
        except ValueError as error:
            raise RequestError(f"{field}: {error}.", field=field) from error
    try:
        HostAddress(
            name=host.name,
            address=host.address,
            port=host.port,
            user=host.user,
            host_key=_NO_KEY_YET,
            data_address=host.data_address,
        )
    except ValidationError as error:
        path, problem = first_problem(error)
        raise RequestError(f"{path[0]}: {problem}", field=str(path[0])) from error
    for field in ("address", "data_address"):
        if why := denial(getattr(host, field), host.port):
            raise RequestError(why, field=field)
    if host.roles not in Host.Roles.values:
        raise RequestError(f"A host is one of {', '.join(Host.Roles.values)}.", field="roles")
    seen, hop = {host.pk} - {None}, host.jump
    while hop is not None:
        if hop.team_id != host.team_id:
            raise RequestError("There is no such jump host.", field="jump")
        if hop.pk in seen:
            raise RequestError("The jump hosts lead back to this host.", field="jump")
        seen.add(hop.pk)
        hop = hop.jump


def check_state(state: str, message: str, hint: str = "", findings: Sequence[HostFinding] = ()) -> dict[str, Any]:
    """`Host.last_check`: pending, ok or failed; `at` is now, in UTC; `findings` are what a look at the host told."""
    message, hint = (text.replace("\0", "\ufffd") for text in (message, hint))  # PostgreSQL stores none
    at = database_now().isoformat(timespec="seconds")
    told = [{name: text.replace("\0", "\ufffd") for name, text in asdict(one).items()} for one in findings]
    return {"state": state, "message": message, "hint": hint, "at": at} | ({"findings": told} if told else {})
