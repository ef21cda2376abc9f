"""Annotations of hosts that were out of service: drained by a person, or left dirty by a run."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime

from experiments.models import AuditEntry, Host, Team
from experiments.registry.runs.windows import unix_ms
from experiments.telling.observing.mark import Mark, mark

MOST_TURNS = 5000
IN_SERVICE = (Host.State.READY, Host.State.NEW)


@dataclass(frozen=True)
class Turn:
    """At this moment the host went out of service, for this reason, or came back ("")."""

    at: datetime
    why: str


def out_of_service(team: Team, names: Collection[str]) -> list[Mark]:
    """The spans in which hosts were out of service; one that still is has no end."""
    hosts = {
        host.name: host for host in Host.objects.filter(team=team).select_related("dirty_run").defer("private_key")
    }
    turns: dict[str, list[Turn]] = {name: [] for name in hosts}
    for name, turn in (*_told(team), *_now(hosts.values())):
        if name in turns:
            turns[name].append(turn)
    found = []
    for name in (one for one in hosts if one in names or not names):
        page = f"/t/{team.slug}/hosts/{hosts[name].pk}/"
        for start, end, why in _spans(turns[name]):
            tags = ["benchhub", "host", f"host:{name}", "out of service"]
            end_ms = unix_ms(end) if end else None
            found.append(
                mark(
                    unix_ms(start),
                    f"{name} out of service",
                    why,
                    tags,
                    page,
                    end_ms=end_ms,
                    is_open=end is None,
                )
            )
    return found


def _spans(turns: list[Turn]) -> Iterator[tuple[datetime, datetime | None, str]]:
    out: Turn | None = None
    for turn in sorted(turns, key=lambda one: one.at):
        if turn.why and out is None:
            out = turn
        elif not turn.why and out is not None:
            yield out.at, turn.at, out.why
            out = None
    if out is not None:
        yield out.at, None, out.why


def _told(team: Team) -> Iterator[tuple[str, Turn]]:
    """What the audit trail says: drained and put back, left dirty by a run, proven or cleared."""
    entries = AuditEntry.objects.filter(team=team, action__in=("host.state", "host.clear_dirty"))
    for entry in entries.select_related("actor").order_by("-pk")[:MOST_TURNS]:
        after = entry.after or {}
        who = entry.actor.get_username() if entry.actor else "BenchHub"
        why = "" if after.get("state") in IN_SERVICE else after.get("reason") or f"Drained by {who}."
        yield entry.subject.removeprefix("host "), Turn(entry.at, why)


def _now(hosts: Collection[Host]) -> Iterator[tuple[str, Turn]]:
    """Hosts that are dirty now, also by a run from before the audit trail said so."""
    for host in hosts:
        if host.state == Host.State.DIRTY and host.dirty_run and host.dirty_run.finished_at:
            yield host.name, Turn(host.dirty_run.finished_at, host.state_reason)
