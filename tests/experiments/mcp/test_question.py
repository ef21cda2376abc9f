"""A question in words, answered from the demonstration's records by tool calls alone, as an assistant would."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from mcp.client.client import Client
from mcp_types import TextContent

from experiments.keeping.demo.history import make_history
from experiments.models import Member
from tests.experiments.mcp.conftest import Talk

QUESTION = "What made p99 worse last week?"


async def answer(client: Client, today: datetime) -> str:
    """The way to the answer: what got worse, what goes with it, whether it still is so. Nothing is known beforehand.

    The week is the one before this week's Monday. No sentence says more than the tools do.
    """

    async def call(tool: str, **arguments: Any) -> dict[str, Any]:
        result = await client.call_tool(tool, arguments)
        (content,) = result.content
        assert isinstance(content, TextContent)
        assert not result.is_error, content.text
        found: dict[str, Any] = json.loads(content.text)
        return found

    monday = (today - timedelta(days=today.weekday())).replace(hour=0, minute=0, second=0, microsecond=0)
    week = {"since": (monday - timedelta(days=7)).isoformat(), "until": monday.isoformat()}
    worse = await call("list_alerts", metric="latency_p99_ms", worse=True, triage="all", **week)
    if not worse["alerts"]:
        return "No history shows that p99 got worse last week."
    alert = worse["alerts"][0]
    why = await call("explain_change", alert=alert["id"])
    history = await call("get_series", fingerprint=alert["series"], metric="latency_p99_ms", points=8)
    before, after = alert["run_before"], alert["run_after"]
    differs = why["differs_between_both_runs"]["configuration"]["drift"]
    settings = ", ".join(f"{one['path']} from {one['values'][0]} to {one['values'][1]}" for one in differs)
    level = history["points"][-1]
    return (
        f"p99 of {alert['application']} rose by {alert['change_pct']:.1f} % between run #{before} and run #{after} "
        f"({alert['n_before']} and {alert['n_after']} runs behind it), now {level['value']:.2f} ms in {level['runs']}. "
        f"With it changed, without anybody asking for it: {settings}. That goes with the change and proves no cause. "
        f"See {why['cite'][f'#{after}']}"
    )


def test_what_made_p99_worse_last_week_is_answered_by_tool_calls_alone(
    talk: Talk, admin: Member, stock: dict[str, Any]
) -> None:
    (driver,) = stock["drivers"]
    make_history(admin, sut=stock["sut"], driver=driver, application=stock["application"], recipe=stock["recipe"])
    said = talk(lambda client: answer(client, datetime.now(UTC)))
    print(said)
    assert "sut.kernel.release from 6.1.0-37-amd64 to 6.12.38-amd64" in said
    assert "sysctl.kernel.numa_balancing from 0 to 1" in said
    assert "between run #42 and run #43" in said
    assert "/t/perf/runs/43/" in said
