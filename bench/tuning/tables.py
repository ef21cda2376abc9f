"""Measured tables from a folder, as tables of the game; docs/tuning.md has their columns. None of them is shipped.

Two shapes are read. A table of means has `mean`, perhaps `rel_dev`, and otherwise options. A pool of TUNA's data set
has `kind`, the figures of ten nodes `m0` to `m9`, and parameters `p_*`: there the nodes are the hosts, and each tuning
run, which had nodes of its own, is made relative to its own default.
"""

from __future__ import annotations

import csv
import json
import math
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bench.tuning.synthetic import null_of
from bench.tuning.world import REGION_CRASHES, USUAL_CRASHES, Table
from experiments.analysis.tuning.space import Parameter, Space, Value

Floats = NDArray[np.float64]

HOSTS, NODES = 6, tuple(f"m{node}" for node in range(10))
EXPOSED = 12
"""Parameters of a pool that a policy sees: those that matter most. The others go with the configuration."""
NOT_OPTIONS = {"config_id", "run", "suggestion", "kind", "n_ok", "n_crash", "mean", "rel_dev", "n_rows", "cpu"}
UNITS = {"": 1.0, "k": 1024.0, "kb": 1024.0, "m": 1024.0**2, "mb": 1024.0**2, "s": 1.0, "ms": 0.001}
QUANTITY = re.compile(r"(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)\s?(k|kb|m|mb|s|ms)?")
MOST_LISTED, LOG_FROM_RATIO = 12, 1000
LEAST_NOISE, MOST_NOISE = 0.005, 0.10


@dataclass(frozen=True)
class Source:
    """One system of a folder. `default` None is the configuration of median speed, or a pool's measured default."""

    file: str
    better: Literal["higher", "lower"]
    default: Mapping[str, Value] | None = None
    noise: float = 0.03
    pool: bool = False


_DATABASE: Mapping[str, Value] = {
    "delayedInnodbLogFlush": 0,
    "delayedInnodbLogWrite": 0,
    "innodbFlushMethod": "fsync",
    "binaryLog": 0,
    "innodbDoubleWrite": 1,
    "tempTableSize": 4096,
    "innodbBufferPoolSize": 64,
    "innodbLogBufferSize": 8,
}
_OPENVPN: Mapping[str, Value] = {
    "TCP_NODEAL": 0,
    "compression": "none",
    "cipher": "AES_256_CBC",
    "prng": "sha1",
    "auth": "sha1",
    "reneg_bytes": 30,
}
_SWITCHES = "hostnameLookups keepAlive enableSendfile followSymLinks accessLog extendedStatus inMemory handle"
_APACHE: Mapping[str, Value] = {name: int(name in ("keepAlive", "accessLog")) for name in _SWITCHES.split()}

KNOWN = {
    "nginx": Source("tuna_nginx_wikipedia_azure.csv", "lower", noise=0.02, pool=True),
    "pg_tpcc": Source("tuna_postgres_tpcc_azure.csv", "higher", noise=0.02, pool=True),
    "pg_tpch": Source("tuna_postgres_tpch_azure.csv", "lower", noise=0.02, pool=True),
    "pg_epinions": Source("tuna_postgres_epinions_azure.csv", "higher", noise=0.015, pool=True),
    "pg_mssales": Source("tuna_postgres_mssales_azure.csv", "lower", noise=0.02, pool=True),
    "pg_tpcc_metal": Source("tuna_postgres_tpcc_cloudlab.csv", "higher", noise=0.015, pool=True),
    "mariadb": Source("evolution_mariadb.csv", "lower", _DATABASE),
    "mysql": Source("evolution_mysql.csv", "lower", _DATABASE),
    "openvpn": Source("evolution_openvpn.csv", "higher", _OPENVPN),
    "apache": Source("moot_apache.csv", "higher", _APACHE),
    "sqlite": Source("moot_sqlite.csv", "lower", noise=0.02),
    "redis": Source("moot_redis.csv", "higher", noise=0.02),
}
NULLS = ("mariadb", "apache", "openvpn")


def measured(folder: Path) -> dict[str, Callable[[int], Table]]:
    """Each system of a folder, made for a seed: those of its systems.json (name: fields of Source), or the known ones.

    A system of the file with `"null_of": NAME` is that one with all means equal.
    """
    sources, nulls = dict(KNOWN), {f"null_{name}": name for name in NULLS}
    listed = Path(folder) / "systems.json"
    if listed.exists():
        fields = json.loads(listed.read_text())
        nulls = {name: one["null_of"] for name, one in fields.items() if "null_of" in one}
        sources = {name: Source(**one) for name, one in fields.items() if name not in nulls}
    found: dict[str, Callable[[int], Table]] = {}
    for name, source in sources.items():
        if (Path(folder) / source.file).exists():
            found[name] = partial(_made, name, source, Path(folder))
    for name, of in nulls.items():
        if of in found:
            found[name] = partial(_null, name, sources[of], Path(folder))
    if not found:
        raise ValueError(f"{folder} has neither systems.json nor any of the known tables")
    return found


def _made(name: str, source: Source, folder: Path, seed: int) -> Table:
    path = folder / source.file
    if not source.pool:
        return _table(name, source, path)
    table = _pool(name, source, path)
    shuffled = np.random.default_rng([zlib.crc32(name.encode()), seed, 9])
    base, crashes = table.base.copy(), table.crashes if table.crashes is not None else np.zeros_like(table.base)
    for row in range(1, len(base)):  # node numbers mean nothing across tuning runs
        base[row] = base[row][shuffled.permutation(base.shape[1])]
    return replace(table, base=base, crashes=crashes)


def _null(name: str, source: Source, folder: Path, seed: int) -> Table:
    return null_of(lambda _name, _source: _made(name, source, folder, seed))(name, np.random.default_rng(seed))


@cache
def _rows(path: Path) -> tuple[dict[str, str], ...]:
    with path.open(newline="") as text:
        return tuple(csv.DictReader(text))


@cache
def _table_of(path: Path) -> tuple[Space, tuple[dict[str, Value], ...], Floats]:
    rows = _rows(path)
    columns = {name: _values([row[name] for row in rows]) for name in rows[0] if name not in NOT_OPTIONS}
    space = Space(tuple(_parameter(name, values) for name, values in columns.items()))
    configs = tuple({name: values[at] for name, values in columns.items()} for at in range(len(rows)))
    return space, configs, np.array([float(row["mean"]) for row in rows])


@cache
def _table_before(name: str, better: str, noise: float, path: Path, default: tuple[tuple[str, Value], ...]) -> Table:
    space, configs, means = _table_of(path)
    noises = np.array([float(row.get("rel_dev") or noise) for row in _rows(path)])
    place = int(np.argsort(means)[len(means) // 2])
    base = np.repeat(means[:, None], HOSTS, axis=1)
    table = Table(name, space, configs, place, better == "higher", base, np.clip(noises, LEAST_NOISE, MOST_NOISE))
    return replace(table, default=table.nearest(dict(default))) if default else table


def _table(name: str, source: Source, path: Path) -> Table:
    return _table_before(name, source.better, source.noise, path, tuple((source.default or {}).items()))


@dataclass(frozen=True, eq=False)
class _Pool:
    """The rows of a pool: parameters by column, figures by node, each tuning run relative to its own default."""

    columns: dict[str, list[Value]]
    kind: NDArray[np.str_]
    relative: Floats
    level: float


@cache
def _pool(name: str, source: Source, path: Path) -> Table:
    pool = _read_pool(path)
    use = [int(np.flatnonzero(pool.kind == "default")[0])]
    use += [at for at, kind in enumerate(pool.kind) if kind in ("full", "crash")]
    kept = _exposed(pool)
    space = Space(
        tuple(_parameter(one[2:], [pool.columns[one][at] for at in use]) for one in pool.columns if one in kept)
    )
    configs = tuple({one[2:]: pool.columns[one][at] for one in pool.columns if one in kept} for at in use)
    relative = pool.relative[use].copy()
    crashes = np.where(np.isnan(relative), REGION_CRASHES, USUAL_CRASHES)
    relative = np.where(np.isnan(relative), _mean(relative)[:, None], relative)
    relative[np.isnan(relative)] = 1.0  # crashed everywhere: never seen
    relative[0] = 1.0  # the defaults of ten runs average out to this
    noises = np.full(len(use), source.noise)
    base = pool.level * relative
    return Table(name, space, configs, 0, source.better == "higher", base, noises, crashes, makes_unstable=False)


def _read_pool(path: Path) -> _Pool:
    rows = _rows(path)
    figures = np.array(
        [[float(row[node]) if row[node] not in ("", "crash") else math.nan for node in NODES] for row in rows]
    )
    run, kind = np.array([row["run"] for row in rows]), np.array([row["kind"] for row in rows])
    relative = np.full(figures.shape, math.nan)
    for one in np.unique(run):
        mine, defaults = run == one, (run == one) & (kind == "default")
        wide = mine & np.isin(kind, ["full", "default"]) & np.isfinite(figures).any(axis=1)
        nodes = np.nanmedian(figures[wide] / _mean(figures[wide])[:, None], axis=0)
        relative[mine] = figures[mine] / nodes / np.nanmean(figures[defaults] / nodes)
    columns = {name: _values([row[name] for row in rows]) for name in rows[0] if name.startswith("p_")}
    return _Pool(columns, kind, relative, float(np.nanmean(figures[kind == "default"])))


def _exposed(pool: _Pool) -> set[str]:
    """The parameters that explain most of the speed, or of the crashes."""
    level = _mean(pool.relative)
    has = np.isfinite(level)
    speed, crashed = np.log(level[has]), (pool.kind == "crash").astype(float)
    explained: dict[str, float] = {}
    for name, values in pool.columns.items():
        distinct = len(set(values))
        if distinct >= 2 and not (isinstance(values[0], str) and distinct > MOST_LISTED):
            seen = [value for value, there in zip(values, has, strict=True) if there]
            explained[name] = max(_relevance(seen, speed), _relevance(values, crashed))
    return set(sorted(explained, key=lambda name: -explained[name])[:EXPOSED])


def _relevance(values: Sequence[Value], y: Floats) -> float:
    """The share of the variation of the ranks of y that these values explain."""
    ranks = np.unique(y, return_inverse=True)[1].astype(float)
    ranks -= ranks.mean()
    distinct = set(values)
    if isinstance(values[0], str) or len(distinct) <= 4:
        groups = [ranks[[one == value for one in values]] for value in distinct]
        between = math.fsum(len(group) * float(group.mean()) ** 2 for group in groups)
        return between / max(1e-12, float(ranks @ ranks)) - (len(distinct) - 1) / len(ranks)
    x = np.unique(np.array(values, dtype=float), return_inverse=True)[1].astype(float)
    x -= x.mean()
    return float((x @ ranks) ** 2 / max(1e-12, (x @ x) * (ranks @ ranks)))


def _mean(rows: Floats) -> Floats:
    """The mean of what is there, row by row; NaN where nothing is."""
    count = np.isfinite(rows).sum(axis=1)
    return np.where(count > 0, np.nansum(rows, axis=1) / np.maximum(count, 1), math.nan)


def _values(texts: Sequence[str]) -> list[Value]:
    """A column of texts: numbers where all are numbers; '4 8k' is 4 times 8k."""
    found: list[Value] = []
    for text in texts:
        parts = [QUANTITY.fullmatch(part.strip().lower()) for part in text.split(" ")] if text else [None]
        product = 1.0
        for part in parts:
            if part is None:
                return list(texts)
            product *= float(part[1]) * UNITS[part[2] or ""]
        found.append(int(product) if product.is_integer() else product)
    return found


def _parameter(name: str, values: Sequence[Value]) -> Parameter:
    seen = sorted(set(values), key=lambda value: (isinstance(value, str), value))
    if isinstance(seen[0], str):
        return Parameter(name, "switch" if set(seen) <= {"on", "off", "yes", "no"} else "choice", tuple(seen))
    if set(seen) <= {0, 1}:
        return Parameter(name, "switch", tuple(seen))
    kind: Literal["integer", "number"] = "integer" if all(isinstance(value, int) for value in seen) else "number"
    if len(seen) <= MOST_LISTED:
        return Parameter(name, kind, tuple(seen))
    low, high = float(seen[0]), float(seen[-1])
    return Parameter(name, kind, low=low, high=high, log=low > 0 and high / low >= LOG_FROM_RATIO)
