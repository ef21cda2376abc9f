"""Histories, change points, and what goes with a change."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import Field, model_validator

from experiments.mcp.asking import Api, Refused
from experiments.mcp.fitting import marked, without_empty
from experiments.mcp.tool import Answer, Arguments, Id, Metric, Name, Time, Tool
from experiments.registry.errors import RequestError
from experiments.telling.run_list.conditions import parse_time

_PAGE = 500
_NOT_FOUND = 404
_ALERT = (
    "id", "url", "kind", "state", "triage", "sentence", "worse", "metric", "unit", "application", "workload", "recipe",
    "variation", "series", "run_before", "run_after", "at", "mean_before", "mean_after", "change_pct", "n_before",
    "n_after", "what_changed", "found_at", "owner",
)  # fmt: skip


class ListTrends(Arguments):
    search: str = Field("", max_length=200, description="Words of the names of application, workload and tool")
    limit: int = Field(20, ge=1, le=50)


class GetSeries(Arguments):
    fingerprint: str = Field(pattern=r"^[A-Za-z0-9_-]{1,100}$", description="Of list_trends, get_run or an alert")
    metric: Metric = "throughput_rps"
    recipe: Name = Field("", description="Only runs with this recipe")
    since: Time = ""
    until: Time = ""
    points: int = Field(40, ge=2, le=100, description="At most so many; more nights are put together")


class ListAlerts(Arguments):
    triage: Literal["open", "all", "untriaged", "acknowledged", "expected", "infra", "invalid", "fixed"] = Field(
        "open", description="open = nobody has said what it is, and it still shows"
    )
    metric: Metric = ""
    worse: bool | None = Field(None, description="true: only what got worse; false: only what got better")
    since: Time = Field("", description="Changed at or after this time")
    until: Time = Field("", description="Changed before this time")
    limit: int = Field(20, ge=1, le=50)


class ExplainChange(Arguments):
    alert: Id | None = Field(None, description="Id of list_alerts")
    experiment: Id | None = Field(None, description="Its verdicts are explained")
    metric: Metric = Field("", description="Of an experiment; else the one that decides")

    @model_validator(mode="after")
    def _one_of_both(self) -> ExplainChange:
        if (self.alert is None) == (self.experiment is None):
            raise ValueError("Give alert or experiment, one of both.")
        return self


async def list_trends(api: Api, asked: ListTrends) -> Answer:
    """The series of the team whose names have all words."""
    series = await api.rows("/series")
    words = asked.search.lower().split()
    fitting = [
        row
        for row in series.found
        if all(word in f"{row['application']} {row['workload']} {row['tool']}".lower() for word in words)
    ]
    found = [without_empty(row) for row in fitting[: asked.limit]]
    content = {"series": found, "more": len(fitting) - len(found), **series.looked_at("series, newest run first")}
    return Answer(content, [row.get("last_run") for row in found])


async def get_series(api: Api, asked: GetSeries) -> Answer:
    """One metric over time, in few points, with its change points."""
    given = asked.model_dump(exclude={"fingerprint", "points"})
    found = await api.get(f"/series/{asked.fingerprint}", **given)
    points = found["points"]
    size = -(-len(points) // asked.points) or 1
    cut = [_stretch(points[start : start + size]) for start in range(0, len(points), size)]
    changes = [without_empty(one) for one in found["change_points"]]
    content = {
        **{name: found[name] for name in ("metric", "unit", "direction", "truncated")},
        "nights": len(points),
        "nights_per_point": size,
        "points": cut,
        "change_points": changes,
        "expected_levels": found["expected_levels"],
    }
    return Answer(content, [number for one in changes for number in (one.get("run_before"), one.get("run_after"))])


def _stretch(points: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Some nights as one point: the mean of their means, the lowest and the highest, and their runs."""
    values = [one["value"] for one in points]
    numbers = sorted(number for one in points for number in one["runs"])
    found = {"at": points[-1]["at"], "value": sum(values) / len(values), "runs": _range(numbers)}
    return {**found, "min": min(values), "max": max(values)} if len(points) > 1 else found


def _range(numbers: Sequence[int]) -> str:
    return f"#{numbers[0]}" if len(numbers) == 1 else f"#{numbers[0]} to #{numbers[-1]}"


async def list_alerts(api: Api, asked: ListAlerts) -> Answer:
    """Alerts of the filters, the newest first."""
    since, until = _time(asked.since, "since"), _time(asked.until, "until")
    page = await api.get("/alerts", triage=asked.triage, metric=asked.metric, limit=_PAGE)
    fitting = [
        row
        for row in page["items"]
        if (asked.worse is None or row["worse"] == asked.worse)
        and (since is None or _at(row) >= since)
        and (until is None or _at(row) < until)
    ]
    found = [_alert(row) for row in fitting[: asked.limit]]
    content: dict[str, Any] = {"alerts": found, "more": len(fitting) - len(found)}
    if page["next_cursor"]:
        content["looked_at"] = f"the newest {_PAGE} alerts"
    return Answer(content, [number for row in found for number in (row.get("run_before"), row.get("run_after"))])


async def explain_change(api: Api, asked: ExplainChange) -> Answer:
    """What goes with a change point, or with the verdicts of an experiment."""
    if asked.experiment is not None:
        several = await api.get(f"/experiments/{asked.experiment}/why", metric=asked.metric)
        runs = [number for one in several for number in (*one["baseline"][:3], *one["candidate"][:3])]
        return Answer({"experiment": asked.experiment, "why": [without_empty(one) for one in several]}, runs)
    alert = await api.get(f"/alerts/{asked.alert}")
    content = {
        "alert": _alert(alert),
        "differs_between_both_runs": {
            part: {kind: alert[part][kind] for kind in ("asked", "drift")}
            for part in ("configuration", "hardware")
            if alert[part]
        },
        "confounders": alert["confounders"],
        "same_point": alert["same_point"],
    }
    try:
        content["why"] = without_empty(await api.get(f"/alerts/{asked.alert}/why"))
    except Refused as refused:
        if refused.status != _NOT_FOUND:
            raise
        content["why"] = {"missing": [str(refused)]}
    content["read_it_so"] = (
        "What differs goes with the change; it is no proof of a cause. Evidence `interval` has been shown by the "
        "measurements, `difference` only stands beside it. An experiment with that one setting changed would prove it."
    )
    return Answer(content, [alert["run_before"], alert["run_after"]])


def _alert(row: dict[str, Any]) -> dict[str, Any]:
    found = without_empty({name: row[name] for name in _ALERT})
    note = marked(row["note"], "note that a person wrote")
    return {**found, "note": note} if note else found


def _at(row: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(row["at"] or row["found_at"]).astimezone(UTC)


def _time(text: str, name: str) -> datetime | None:
    try:
        return parse_time(text, name) if text else None
    except RequestError as error:
        raise Refused(f"{error.message} (field: {name})", 422) from error


TOOLS = (
    Tool(
        "list_trends",
        "Histories",
        "The team's histories: runs with the same application, workload, tool and hardware, night after night. "
        "`fingerprint` is what get_series takes.",
        ListTrends,
        list_trends,
    ),
    Tool(
        "get_series",
        "One metric over time",
        "The history of one metric in a few points, oldest first, with the change points: where the level jumped, "
        "between which runs, by how many percent, and whether that is worse.",
        GetSeries,
        get_series,
    ),
    Tool(
        "list_alerts",
        "What changed",
        "Alerts, the newest first: levels that jumped (which metric, between which runs, from what to what, better or "
        "worse, what changed in the configuration) and data that stopped coming. For 'what got worse last week' give "
        "metric, worse=true and since, then explain_change.",
        ListAlerts,
        list_alerts,
    ),
    Tool(
        "explain_change",
        "What goes with a change",
        "What goes with one alert or with the verdicts of an experiment: configuration and hardware that differ "
        "between the runs on both sides, functions and host figures that changed with it, and what was not measured.",
        ExplainChange,
        explain_change,
    ),
)
