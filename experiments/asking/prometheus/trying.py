"""Trying a source: each of its queries over the last minutes, as it would be asked of a host."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from experiments.asking.prometheus.answers import PrometheusError, channels_in
from experiments.asking.prometheus.client import Prometheus, Range
from experiments.asking.prometheus.queries import ChannelQuery, queries_of
from experiments.models import Host, Member, PrometheusSource, Role, Run
from experiments.registry.errors import RequestError
from experiments.registry.outgoing.request import Resolver
from experiments.registry.teams import audit
from experiments.registry.teams.access import require

LAST_S = 300.0
LIMIT_S = 5.0
"""Of one answer; somebody waits for all of them."""
MOST_S = 15.0


@dataclass(frozen=True)
class Tried:
    """What one query gave: the PromQL that was asked, and how much came; `problem` "" = channels can be made of it."""

    channel: str
    role: str
    asked: str
    series: int = 0
    points: int = 0
    problem: str = ""


def try_source(
    member: Member, source: PrometheusSource, host: str = "", *, resolve: Resolver | None = None
) -> list[Tried]:
    """Ask each query of the source about the last five minutes of a host, by its name; "" = the team's first one.

    RequestError (field `host`) for a host that is not there.
    """
    require(member, Role.ADMIN)
    values = _values(member, host)
    audit.record(member, "prometheus.try", f"prometheus {source.name}")
    queries = queries_of(source.queries)
    found = [Tried(one.channel, one.role, one.filled({**values, "role": one.role}, one.step_s)) for one in queries]
    until_s = time.monotonic() + MOST_S
    try:
        server = Prometheus(source, limit_s=LIMIT_S, resolve=resolve)
        now_s = server.clock().now_s
    except PrometheusError as error:
        return [replace(one, problem=str(error)) for one in found]
    return [_tried(server, query, one.asked, now_s, until_s) for query, one in zip(queries, found, strict=True)]


def _tried(server: Prometheus, query: ChannelQuery, promql: str, now_s: float, until_s: float) -> Tried:
    if time.monotonic() > until_s:
        return Tried(query.channel, query.role, promql, problem=f"There was no time left for it within {MOST_S:g} s.")
    asked, found, problem = Range.around(now_s - LAST_S, now_s, query.step_s, margin_s=0, now_s=now_s), [], ""
    try:
        found = server.over(promql, asked)
        channels_in(query, found)
    except PrometheusError as error:
        problem = str(error)
    points = sum(len(one.values) for one in found)
    return Tried(query.channel, query.role, promql, len(found), points, problem)


def _values(member: Member, name: str) -> dict[str, str]:
    """Of a host, and of the newest run."""
    hosts = Host.objects.for_team(member.team).order_by("name")
    host = hosts.filter(name=name).first() if name else hosts.first()
    if host is None:
        raise RequestError(
            f"There is no host {name}." if name else "Add a host first: it is asked about.", field="host"
        )
    run = Run.objects.for_team(member.team).select_related("application").order_by("-number").first()
    application = run.application.name if run and run.application else ""
    about = {"run": str(run.number if run else 0), "team": member.team.slug, "application": application}
    return {**about, "host": host.name, "address": host.address}
