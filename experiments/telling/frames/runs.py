"""Runs as a table with a column for each figure, label and parameter that any of them has."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any, cast

from django.db.models import Count, F, Func, TextField
from django.db.models.functions import Cast

from agents.drivers.jmeter.jtl.frames import pl  # polars, loaded with the first use
from experiments.models.runs import RunQuerySet
from experiments.running.queue.priorities import name_of
from experiments.telling.frames.ahead import one_ahead
from experiments.telling.frames.parquet import parquet_of
from experiments.telling.run_list.lines import COLUMNS as LINES
from experiments.telling.run_list.lines import Names, names_of

AT_ONCE = 10_000
"""Runs of a part at most; fewer where they are wide."""
CELLS_AT_ONCE = 1_000_000
MOST_KEYS = 1_000
"""Of figures, of labels and of parameters: who writes more keys than that has put values into them."""
_TIMES = ("queued_at", "started_at", "finished_at")
_LISTS = ("drivers", "tags")
_BETWEEN = "\x1f"
"""Between the names of drivers on their way to polars, which takes a text of each run far faster than a list."""
_MAPS = {"metrics": "", "labels": "label.", "parameters": "param."}
"""Column of a run -> what stands before its keys in the name of a column."""
_FIGURES = ("throughput_rps", "latency_p50_ms", "latency_p99_ms", "errors_total", "sut_cpu_ratio", "driver_cpu_ratio")
COLUMNS = (
    *("number", "origin", "state", "outcome", "validity", "restore", "experiment", "variant", "block", "profiled"),
    *("application", "application_version", "recipe", "recipe_version", "workload", "workload_version"),
    *("sut", "drivers", "tags", "priority", "created_by", "queued_at", "started_at", "finished_at", "archived"),
    *("fingerprint", "hides_latency", "failure", "cause", *_FIGURES),
)
"""Those of every file. Behind them, by their names: other figures, `label.KEY` and `param.KEY`.

With more than `MOST_KEYS` of a kind the most common have columns, and `metrics_json`, `labels_json` or
`parameters_json` has all of each run.
"""


class _KeysOf(Func):
    function = "jsonb_object_keys"
    output_field = TextField()
    set_returning = True


@dataclass(frozen=True)
class _Keys:
    """The keys of figures, labels and parameters that have columns: the most common `MOST_KEYS` of each kind.

    `cut` are the kinds that have more.
    """

    shown: Mapping[str, Sequence[str]]
    cut: frozenset[str]

    @classmethod
    def of(cls, runs: RunQuerySet) -> _Keys:
        shown, cut = {}, set()
        for kind in _MAPS:
            each = runs.order_by().annotate(key=_KeysOf(F(kind))).values("key").annotate(times=Count("pk"))
            common = list(each.order_by("-times", "key").values_list("key", flat=True)[: MOST_KEYS + 1])
            if len(common) > MOST_KEYS:
                cut.add(kind)
            shown[kind] = common[:MOST_KEYS]
        shown["metrics"] = list(dict.fromkeys((*_FIGURES, *shown["metrics"])))
        return cls(shown, frozenset(cut))

    @property
    def rows_at_once(self) -> int:
        """Runs of a part, so that it has at most `CELLS_AT_ONCE` cells."""
        of_keys = (f"{prefix}{key}" for kind, prefix in _MAPS.items() for key in self.shown[kind])
        return min(AT_ONCE, CELLS_AT_ONCE // len({*COLUMNS, *of_keys, *self.cut}))


@dataclass(frozen=True)
class _Rows:
    """Some runs as the database has them, a sequence of values for each column, and the names of what they refer to."""

    table: Mapping[str, Sequence[Any]]
    names: Names
    keys: _Keys


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
    """All runs by number, as many at a time as make a part."""
    keys = _Keys.of(runs)
    left_out = ("labels", "tags", *_FIGURES, *_TIMES)
    plain = [name for name in LINES if name not in left_out] + ["fingerprint", "failure", "cause"]
    # Texts: PostgreSQL writes them and polars reads them, both without an object of Python for each value.
    texts = {f"{name}_json": Cast(name, TextField()) for name in (*_MAPS, "tags")}
    times = {name: Cast(name, TextField()) for name in _TIMES}
    ordered = runs.order_by("number").values_list(*plain, *texts.values(), *times.values())
    names = (*plain, *texts, *times)
    last = -1
    while rows := list(ordered.filter(number__gt=last)[: keys.rows_at_once]):
        table = dict(zip(names, zip(*rows, strict=True), strict=True))
        last = cast(int, table["number"][-1])
        yield _Rows(table, names_of(table), keys)


def _types() -> dict[str, Any]:
    numbers = ("number", "experiment", "block", "application_version", "recipe_version", "workload_version")
    return {
        **dict.fromkeys(COLUMNS, pl.String),
        **dict.fromkeys(numbers, pl.Int64),
        **dict.fromkeys(_FIGURES, pl.Float64),
        **dict.fromkeys(_LISTS, pl.List(pl.String)),
        **dict.fromkeys(_TIMES, pl.Datetime("us", "UTC")),
        **dict.fromkeys(("archived", "hides_latency", "profiled"), pl.Boolean),
    }


def _part(rows: _Rows) -> Any:
    table, found, keys = rows.table, rows.names, rows.keys
    columns: dict[str, Sequence[Any]] = {name: table[name] for name in COLUMNS if name in table}
    columns["experiment"] = table["experiment_id"]
    columns["priority"] = [name_of(priority) for priority in table["priority"]]
    columns["drivers"] = [_BETWEEN.join(found.several("drivers_id", pk)) for pk in table["drivers_id"]]
    columns["tags"] = table["tags_json"]
    for name in ("variant", "sut", "created_by"):
        columns[name] = [found.one(f"{name}_id", pk) for pk in table[f"{name}_id"]]
    for name in ("application", "recipe", "workload"):
        columns |= _document(found, name, table[f"{name}_id"])
    for kind in keys.cut:
        columns[f"{kind}_json"] = table[f"{kind}_json"]
    if "metrics" in keys.cut:
        columns["metrics_json"] = list(map(_without_hidden, table["metrics_json"], table["hides_latency"]))
    wholes = (f"{kind}_json" for kind in keys.cut)
    types = _types() | dict.fromkeys((*_LISTS, *_TIMES, *wholes), pl.String)
    part = pl.DataFrame(columns, schema_overrides={name: types[name] for name in columns}).with_columns(
        *(pl.col(name).str.to_datetime("%Y-%m-%d %H:%M:%S%.f%#z", time_unit="us") for name in _TIMES),
        pl.col("drivers").str.split(_BETWEEN).list.filter(pl.element() != ""),
        pl.col("tags").str.json_decode(pl.List(pl.String)),
    )
    for kind, prefix in _MAPS.items():
        wanted = keys.shown[kind] if kind in keys.cut else None
        part = part.hstack(_flat(table[f"{kind}_json"], prefix, part.columns, wanted))
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


def _without_hidden(metrics: str, hides_latency: bool) -> str:
    if not hides_latency:
        return metrics
    return json.dumps({name: value for name, value in json.loads(metrics).items() if not name.startswith("latency_")})


def _flat(texts: Sequence[str], prefix: str, taken: Sequence[str], wanted: Sequence[str] | None) -> Any:
    """A column for each key of the JSON objects, or of those `wanted`: numbers of figures, else texts."""
    kind = pl.String if prefix else pl.Float64
    # An object without keys is no row to polars: one key of our own keeps them apart.
    lines = "\n".join('{"":0}' if text == "{}" else '{"":0,' + text[1:] for text in texts)
    schema = None if wanted is None else {"": pl.Int64, **dict.fromkeys(wanted, kind)}
    frame = pl.read_ndjson(io.BytesIO(lines.encode()), schema=schema, infer_schema_length=None).drop("")
    named = {name: f"{prefix}{name}" if f"{prefix}{name}" not in taken else f"metric.{name}" for name in frame.columns}
    return frame.select(pl.col(name).cast(kind).alias(as_name) for name, as_name in named.items())
