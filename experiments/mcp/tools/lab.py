"""Hosts and the queue: what there is, what is free, what waits."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from experiments.mcp.asking import Api
from experiments.mcp.fitting import marked, with_marked, without_empty
from experiments.mcp.tool import Answer, Arguments, Tool

_HOST = (
    "name", "roles", "labels", "state", "state_reason", "dirty_run", "leased_by", "same_machine_as", "reserved_by",
    "reserved_until", "last_seen_at", "may_launch",
)  # fmt: skip


STATE_REASON = "why the host is in this state, with texts of hosts and tools"
WAITING = "why they wait, with texts of hosts and tools"


class ListHosts(Arguments):
    name: str = Field("", max_length=120, description="Part of the name")
    limit: int = Field(30, ge=1, le=100)


class GetQueue(Arguments):
    limit: int = Field(20, ge=1, le=50, description="Of those that wait")


async def list_hosts(api: Api, asked: ListHosts) -> Answer:
    """Hosts by name, without addresses and keys."""
    hosts = await api.rows("/hosts", fields=",".join(_HOST))
    fitting = [host for host in hosts.found if asked.name.lower() in host["name"].lower()]
    found = [with_marked(without_empty(host), "state_reason", STATE_REASON) for host in fitting[: asked.limit]]
    runs = [host.get(name) for host in found for name in ("leased_by", "dirty_run")]
    content = {"hosts": found, "more": len(fitting) - len(found), **hosts.looked_at("hosts")}
    return Answer(content, runs)


async def get_queue(api: Api, asked: GetQueue) -> Answer:
    """What runs and what waits, with why."""
    queue = await api.get("/queue")
    running = [_line(one) for one in queue["running"]]
    waiting = [_line(one) for one in queue["waiting"][: asked.limit]]
    more = queue["more"] + len(queue["waiting"]) - len(waiting)
    runs = [one["number"] for one in (*running, *waiting)]
    reasons = [f"#{one['run']['number']}: {one['reason']}" for one in queue["waiting"][: asked.limit]]
    content = {"running": running, "waiting": waiting, "why_they_wait": marked(reasons, WAITING), "more": more}
    return Answer(content, runs)


def _line(one: dict[str, Any]) -> dict[str, Any]:
    run = one["run"]
    documents = {kind: run[kind]["name"] for kind in ("application", "recipe", "workload") if run[kind]}
    about = {name: run[name] for name in ("number", "state", "experiment", "sut", "drivers", "priority", "created_by")}
    expected = {name: value for name, value in one.items() if name not in ("run", "reason")}
    return without_empty({**about, **documents, **expected})


TOOLS = (
    Tool(
        "list_hosts",
        "Hosts",
        "The team's hosts: their roles, state (ready, dirty, ...), which run holds them, who has reserved them, and "
        "whether you may launch there. No addresses, no keys.",
        ListHosts,
        list_hosts,
    ),
    Tool(
        "get_queue",
        "Queue",
        "What runs now, and what waits in the order in which it will start, with the reason and the expected start.",
        GetQueue,
        get_queue,
    ),
)
