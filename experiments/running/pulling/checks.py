"""Tests of connections that the workers of a site make, as nobody else reaches its hosts."""

from __future__ import annotations

from datetime import datetime, timedelta

from pydantic import TypeAdapter, ValidationError

from agents.facts.access import Access
from agents.remote.address import HostKey
from agents.running.outfit import HostFinding
from agents.site.wire import HostGiven, HostSeen, HostWay
from agents.working.host_seen import Seen
from experiments.models import Host, Site, Team
from experiments.registry.database_clock import database_now
from experiments.registry.errors import NotFound, RequestError
from experiments.registry.hosts.check_results import asked_of, put_off, store_failure, store_seen
from experiments.registry.hosts.installation import installation
from experiments.registry.hosts.inventory import check_state

UNDER_WAY = "The worker of its site is looking at it."
TAKES = timedelta(minutes=2)
"""A look at hosts that is under way for longer is given out again: its worker is gone."""


def check_due(team: Team, site: Site) -> HostGiven | None:
    """A host of the team at the site whose connection is to be tested, given out to one worker; None when none is."""
    for host in Host.objects.select_related("jump").filter(team=team, site=site, last_check__state="pending"):
        if not _is_waiting(host) or put_off(host):
            continue
        state = check_state("pending", UNDER_WAY)
        taken = Host.objects.filter(pk=host.pk, last_check=host.last_check).update(last_check=state)
        if taken:
            return _given(host, str(state["at"]))
    return None


def _is_waiting(host: Host) -> bool:
    under_way = host.last_check["message"] == UNDER_WAY
    return not under_way or database_now() - datetime.fromisoformat(host.last_check["at"]) > TAKES


def _given(host: Host, asked_at: str) -> HostGiven:
    asked, here = asked_of(host), installation()
    return HostGiven(
        id=host.pk,
        asked_at=asked_at,
        way=HostWay.of(asked.address),
        serves=asked.serves,
        drives=asked.drives,
        servers=dict(asked.servers),
        installation_id=here.id,
        installation_name=here.name,
    )


def host_seen(team: Team, site: Site, host_id: int, told: HostSeen) -> None:
    """Store what the worker saw, unless somebody has asked for another look since. NotFound for hosts elsewhere."""
    host: Host | None = Host.objects.filter(pk=host_id, team=team, site=site).first()
    if host is None:
        raise NotFound("There is no such host at this site.")
    if host.last_check.get("state") != "pending" or host.last_check.get("at") != told.asked_at:
        return
    try:
        findings = tuple(TypeAdapter(list[HostFinding]).validate_python([one.model_dump() for one in told.findings]))
        access = None if told.access is None else TypeAdapter(Access).validate_python(told.access)
        offered = tuple(HostKey(line) for line in told.offered)
        for key in offered:
            _ = key.fingerprint
    except (ValidationError, ValueError) as error:
        raise RequestError("This is not what a look at a host brings.", field="offered") from error
    if told.failure:
        store_failure(host, told.failure, told.hint, findings)
        return
    seen = Seen(
        offered=offered,
        digest=told.digest,
        profile=told.profile,
        unread=told.unread,
        access=access,
        clock_ahead_s=told.clock_ahead_s,
        remark=told.remark,
        notes=tuple(told.notes),
        findings=findings,
    )
    store_seen(host, seen)
