"""Finding runs, and what one of them showed."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from experiments.mcp.asking import Api
from experiments.mcp.fitting import marked, with_marked, without_empty
from experiments.mcp.tool import Answer, Arguments, Name, RunNumber, Time, Tool

ROW = (
    "number", "state", "outcome", "validity", "profiled", "application", "recipe", "workload", "sut", "drivers",
    "experiment", "variant", "labels", "finished_at", "throughput_rps", "latency_p50_ms", "latency_p99_ms",
    "errors_total",
)  # fmt: skip
_DETAIL = (
    *ROW, "url", "origin", "restore", "tags", "created_by", "queued_at", "started_at", "cause", "retry_of",
    "retried_as", "throughput_change", "fingerprint", "members",
)  # fmt: skip


class SearchRuns(Arguments):
    query: str = Field(
        "", max_length=200, description="#number, parts of names, beginnings of words in labels and tags, key:value"
    )
    application: Name = ""
    recipe: Name = ""
    workload: Name = ""
    sut: Name = Field("", description="Name of the host under test")
    label: list[Annotated[str, Field(max_length=300)]] = Field([], max_length=10, description="key=value")
    outcome: Literal["", "succeeded", "failed", "cancelled", "lost"] = ""
    validity: Literal["", "valid", "suspect", "invalid"] = Field(
        "", description="Whether the figures count: those of valid and suspect runs do"
    )
    since: Time = Field("", description="Queued at or after this time")
    until: Time = Field("", description="Queued before this time")
    sort: Literal["-number", "number", "-throughput_rps", "throughput_rps", "-latency_p99_ms", "latency_p99_ms"] = (
        "-number"
    )
    limit: int = Field(20, ge=1, le=50)
    cursor: str = Field("", max_length=500, description="next_cursor of the answer before")


class GetRun(Arguments):
    number: RunNumber


def row_of(run: dict[str, Any]) -> dict[str, Any]:
    """A run as a line: documents as name@version, and only what it says."""
    row = {name: run[name] for name in ROW if name in run}
    for kind in ("application", "recipe", "workload"):
        if isinstance(row.get(kind), dict):
            row[kind] = f"{row[kind]['name']}@{row[kind]['version']}"
    return without_empty(row)


def waiting_of(run: dict[str, Any]) -> dict[str, Any] | None:
    """Why a queued run waits, and for how long; None of any other."""
    waiting: dict[str, Any] | None = run["waiting"]
    return waiting and with_marked(waiting, "reason", "why it waits, with texts of hosts and tools")


async def search_runs(api: Api, asked: SearchRuns) -> Answer:
    """Runs of the filters, as rows."""
    page = await api.get("/runs", **asked.model_dump(), fields=",".join(ROW))
    rows = [row_of(run) for run in page["items"]]
    return Answer({"runs": rows, "next_cursor": page["next_cursor"]}, [row["number"] for row in rows])


async def get_run(api: Api, asked: GetRun) -> Answer:
    """One run, without its specification."""
    run = await api.get(f"/runs/{asked.number}")
    hidden = run["hides_latency"]
    found = {
        **row_of(run),
        **without_empty({name: run[name] for name in _DETAIL if name not in ROW and name in run}),
        "metrics": {
            name: value for name, value in run["metrics"].items() if not (hidden and name.startswith("latency_"))
        },
        "waiting": waiting_of(run),
        "findings": marked(
            [f"{one['check']} ({one['level']}): {one['sentence']}" for one in run["findings"]],
            "what the checks of the run say, with texts of hosts and tools",
        ),
        "notes": marked(run["notes"], "notes that people wrote"),
        "failure": marked(run["failure"], "what failed, with texts of hosts and tools"),
        "failure_hint": marked(run["failure_hint"], "what to do about the failure, with texts of hosts and tools"),
    }
    if hidden:
        found["latency_left_out"] = "The server was past its limit: latency is backlog and must not be compared."
    return Answer(without_empty(found), [asked.number, run["retry_of"], run["retried_as"]])


TOOLS = (
    Tool(
        "search_runs",
        "Search runs",
        "Runs of the team by names, labels, time, outcome and validity, newest first. Each row has its main figures: "
        "throughput_rps in requests/s, latencies in ms. A run counts in comparisons when it succeeded, its validity is "
        "valid or suspect, and it is not profiled.",
        SearchRuns,
        search_runs,
    ),
    Tool(
        "get_run",
        "One run",
        "Everything that one run showed: all figures (the unit is the end of each name), why it counts or does not "
        "(findings), what failed, its experiment, and `fingerprint`, the history it belongs to (get_series).",
        GetRun,
        get_run,
    ),
)
