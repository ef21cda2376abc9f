"""Runs as a table with a column for each figure, label and parameter that any of them has."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any, cast

from django.db.models import TextField
from django.db.models.functions import Cast

from agents.drivers.jmeter.jtl.frames import pl  # polars, loaded with the first use
from experiments.models.runs import RunQuerySet
from experiments.running.queue.priorities import name_of
from experiments.telling.frames.ahead import one_ahead
from experiments.telling.frames.parquet import parquet_of
from experiments.telling.run_list.lines import COLUMNS as LINES
from experiments.telling.run_list.lines import Names, names_of

AT_ONCE = 10_000
_TIMES = ("queued_at", "started_at", "finished_at")
_LISTS = ("drivers", "tags")
_BETWEEN = "\x1f"
"""Between the names of drivers on their way to polars, which takes a text of each run far faster than a list."""
_MAPS = {"metrics_json": "", "labels_json": "label.", "parameters_json": "param."}
_FIGURES = ("throughput_rps", "latency_p50_ms", "latency_p99_ms", "errors_total", "sut_cpu_ratio", "driver_cpu_ratio")
COLUMNS = (
    *("number", "origin", "state", "outcome", "validity", "restore", "experiment", "variant", "block"),
    *("application", "application_version", "recipe", "recipe_version", "workload", "workload_version"),
    *("sut", "drivers", "tags", "priority", "created_by", "queued_at", "started_at", "finished_at", "archived"),
    *("fingerprint", "hides_latency", "failure", "cause", *_FIGURES),
)
"""Those of every file. Behind them, by their names: other figures, `label.KEY` and `param.KEY`."""


@dataclass(frozen=True)
class _Rows:
    """Some runs as the database has them, a sequence of values for each column, and the names of what they refer to."""

    table: Mapping[str, Sequence[Any]]
    names: Names


def runs_file(runs: RunQuerySet) -> IO[bytes]:
    """Parquet of these runs by number, all of them: figures as numbers in the unit of their name, times in UTC.

    A figure that a run does not have, or that saturation hides, is null.
    """
    return parquet_of(_parts(runs), COLUMNS, tail=True)


def _parts(runs: RunQuerySet) -> Iterator[Any]:
    yield pl.DataFrame(schema=_types())
    # PostgreSQL writes the next rows, a third of the time, while those before them become a frame.
    yield from one_ahead(_part, _rows(runs))


def _rows(runs: RunQuerySet) -> Iterator[_Rows]:
    """All runs by number, `AT_ONCE` at a time."""
    left_out = ("labels", "tags", *_FIGURES, *_TIMES)
    plain = [name for name in LINES if name not in left_out] + ["fingerprint", "failure", "cause"]
    # Texts: PostgreSQL writes them and polars reads them, both without an object of Python for each value.
    texts = {f"{name}_json": Cast(name, TextField()) for name in ("metrics", "labels", "parameters", "tags")}
    times = {name: Cast(name, TextField()) for name in _TIMES}
    ordered = runs.order_by("number").values_list(*plain, *texts.values(), *times.values())
    names = (*plain, *texts, *times)
    last = -1
    while rows := list(ordered.filter(number__gt=last)[:AT_ONCE]):
        table = dict(zip(names, zip(*rows, strict=True), strict=True))
        last = cast(int, table["number"][-1])
        yield _Rows(table, names_of(table))


def _types() -> dict[str, Any]:
    numbers = ("number", "experiment", "block", "application_version", "recipe_version", "workload_version")
    return {
        **dict.fromkeys(COLUMNS, pl.String),
        **dict.fromkeys(numbers, pl.Int64),
        **dict.fromkeys(_FIGURES, pl.Float64),
        **dict.fromkeys(_LISTS, pl.List(pl.String)),
        **dict.fromkeys(_TIMES, pl.Datetime("us", "UTC")),
        **dict.fromkeys(("archived", "hides_latency"), pl.Boolean),
    }


def _part(rows: _Rows) -> Any:
    table, found = rows.table, rows.names
    columns: dict[str, Sequence[Any]] = {name: table[name] for name in COLUMNS if name in table}
    columns["experiment"] = table["experiment_id"]
    columns["priority"] = [name_of(priority) for priority in table["priority"]]
    columns["drivers"] = [_BETWEEN.join(found.several("drivers_id", pk)) for pk in table["drivers_id"]]
    columns["tags"] = table["tags_json"]
    for name in ("variant", "sut", "created_by"):
        columns[name] = [found.one(f"{name}_id", pk) for pk in table[f"{name}_id"]]
    for name in ("application", "recipe", "workload"):
        columns |= _document(found, name, table[f"{name}_id"])
    types = _types() | dict.fromkeys((*_LISTS, *_TIMES), pl.String)
    part = pl.DataFrame(columns, schema_overrides={name: types[name] for name in columns}).with_columns(
        *(pl.col(name).str.to_datetime("%Y-%m-%d %H:%M:%S%.f%#z", time_unit="us") for name in _TIMES),
        pl.col("drivers").str.split(_BETWEEN).list.filter(pl.element() != ""),
        pl.col("tags").str.json_decode(pl.List(pl.String)),
    )
    for name, prefix in _MAPS.items():
        part = part.hstack(_flat(table[name], prefix, part.columns))
    hidden = [name for name in part.columns if name.startswith("latency_")]
    if not hidden:
        return part
    return part.with_columns(pl.when(~pl.col("hides_latency")).then(pl.col(hidden)).name.keep())


def _document(found: Names, name: str, ids: Sequence[int | None]) -> dict[str, Sequence[Any]]:
    documents = [found.document(f"{name}_id", pk) for pk in ids]
    return {
        name: [one and one[1] for one in documents],
        f"{name}_version": [one and one[0] for one in documents],
    }


def _flat(texts: Sequence[str], prefix: str, taken: Sequence[str]) -> Any:
    """A column for each key of the JSON objects: numbers of figures, else texts."""
    kind = pl.String if prefix else pl.Float64
    # An object without keys is no row to polars: one key of our own keeps them apart.
    lines = "\n".join('{"":0}' if text == "{}" else '{"":0,' + text[1:] for text in texts)
    frame = pl.read_ndjson(io.BytesIO(lines.encode()), infer_schema_length=None).drop("")
    named = {name: f"{prefix}{name}" if f"{prefix}{name}" not in taken else f"metric.{name}" for name in frame.columns}
    return frame.select(pl.col(name).cast(kind).alias(as_name) for name, as_name in named.items())
