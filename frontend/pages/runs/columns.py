"""The columns that the list of runs can show; the choice stands in the URL."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    """`sort` is the key to sort by, "" for none; `csv` are the columns of the CSV that say the same."""

    name: str
    label: str
    csv: tuple[str, ...]
    sort: str = ""
    numeric: bool = False
    default: bool = True


# The usual ones fit into a window of 1,280 px without scrolling sideways.
COLUMNS: tuple[Column, ...] = (
    Column("number", "#", ("number",), sort="number"),
    Column("state", "State", ("state", "outcome", "validity")),
    Column("verdict", "Verdict", ("experiment", "variant")),
    Column("what", "Experiment", ("experiment", "variant")),
    Column("recipe", "Recipe", ("recipe",)),
    Column("workload", "Workload", ("workload",), default=False),
    Column("application", "Application", ("application",), default=False),
    Column("sut", "SUT", ("sut",)),
    Column("drivers", "Driver", ("drivers",), default=False),
    Column("throughput_rps", "Rate", ("throughput_rps",), sort="throughput_rps", numeric=True),
    Column("latency_p50_ms", "p50", ("latency_p50_ms",), numeric=True, default=False),
    Column("latency_p99_ms", "p99", ("latency_p99_ms",), sort="latency_p99_ms", numeric=True),
    Column("change", "Change", ("throughput_change_ratio", "throughput_change_against"), numeric=True),
    Column("errors_total", "Errors", ("errors_total",), numeric=True),
    Column("sut_cpu_ratio", "SUT CPU", ("sut_cpu_ratio",), numeric=True, default=False),
    Column("driver_cpu_ratio", "Driver CPU", ("driver_cpu_ratio",), numeric=True, default=False),
    Column("throughput_per_core_rps", "Requests/s per core", ("throughput_per_core_rps",), numeric=True, default=False),
    Column("requests_per_cpu_s", "Requests per CPU-s", ("requests_per_cpu_s",), numeric=True, default=False),
    Column("labels", "Labels", ("labels", "tags"), default=False),
    Column("notes", "Notes", ("notes",), default=False),
    Column("finished_at", "Age", ("queued_at", "finished_at"), sort="finished_at"),
    Column("by", "By", ("created_by",), default=False),
)


def chosen_columns(names: Iterable[str]) -> list[Column]:
    """The named columns in the order of the table, the number always; the usual ones when none is named."""
    wanted = {part for name in names for part in name.split(",")} & {column.name for column in COLUMNS}
    if not wanted:
        return [column for column in COLUMNS if column.default]
    return [column for column in COLUMNS if column.name in wanted | {"number"}]
