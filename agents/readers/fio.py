"""fio's JSON and JSON+: a result for each job and direction. Source: fio 3.33, stat.c; its manual, "JSON output"."""

from __future__ import annotations

import os

from agents.base.errors import ParseError
from agents.readers.base.json_node import Node, has_keys, load_json
from agents.readers.base.named_result import NamedResult, Readout
from agents.readers.base.numbers import over, percentile_name
from agents.readers.base.result_reader import ResultForm, ResultReader, Source

FORMAT = "fio-json"
NS_PER_MS = 1e6
_DIRECTIONS = ("read", "write", "trim")
_PARTS = (("lat_ns", "latency"), ("clat_ns", "clat"), ("slat_ns", "slat"))
_MOMENTS = (("mean", "mean"), ("min", "min"), ("max", "max"), ("stddev", "stdev"))


def read(source: Source) -> Readout:
    """Every job of fio's JSON. Raises ParseError."""
    document, before = load_json(source.text, "fio")
    version = document.at("fio version").text().removeprefix("fio-")
    shared = document.find("global options")
    results: list[NamedResult] = []
    for place, job in enumerate(document.at("jobs").elements()):
        results += _job(job, place, shared)
    broken = [one for one in results if one.why]
    why = f"{broken[0].benchmark}: {broken[0].why}" if broken else ("" if results else "no job ran")
    return Readout("fio", FORMAT, tuple(results), version, {"text_before_json": before}, why)


def _job(job: Node, place: int, shared: Node | None) -> list[NamedResult]:
    """The directions that did I/O; a job without any is one result that does not count."""
    name, error = job.at("jobname").text(), job.known_count("error") or 0
    params = {"job_index": place, "groupid": job.known_count("groupid")}
    options = {
        option: job.known_text("job options", option) or (shared.known_text(option) if shared else None)
        for option in ("rw", "bs")
    }
    why = f"error {error}: {os.strerror(error) if error < 200 else 'unknown'}" if error else ""
    worked = [way for way in _DIRECTIONS if (job.known_count(way, "total_ios") or 0) > 0]
    cpu = {
        "cpu_user_pct": job.known("usr_cpu"),
        "cpu_system_pct": job.known("sys_cpu"),
        "error": error,
    }
    if not worked:
        if not any(way in job for way in _DIRECTIONS):
            raise ParseError(f"{job.path} has neither read, write nor trim", hint="Give the whole JSON of fio.")
        nothing = {"iops": None, "bytes_per_s": None, "requests": 0, "latency_mean_ms": None, "latency_p99_ms": None}
        return [
            NamedResult(
                name, {**nothing, **cpu}, {**params, "direction": None, **options}, why=why or "the job did no I/O"
            )
        ]
    return [
        NamedResult(name, {**_figures(job.at(way)), **cpu}, {**params, "direction": way, **options}, why=why)
        for way in worked
    ]


def _figures(way: Node) -> dict[str, object]:
    done = way.at("io_bytes").count() > 0  # what was begun and failed counts as an I/O, too
    figures: dict[str, object] = {
        "iops": way.at("iops").number() if done else None,
        "bytes_per_s": way.at("bw_bytes").number() if done else None,
        "bytes": way.at("io_bytes").count(),
        "requests": way.at("total_ios").count(),
        "duration_s": over(way.at("runtime").number(), 1e3),
    }
    for moment, ours in _MOMENTS:
        for part, name in _PARTS:
            figures[f"{name}_{ours}_ms"] = over(way.known(part, moment), NS_PER_MS) if done else None
    for part, name in _PARTS:
        figures |= _percentiles(way.find(part, "percentile"), name)
        bins = way.find(part, "bins")
        if bins is not None:
            counts = [bin_.count() for _, bin_ in bins.items()]
            figures |= {f"{name}_bins": len(counts), f"{name}_bins_total": sum(counts)}
    figures.setdefault("latency_p99_ms", None)
    return figures


def _percentiles(found: Node | None, name: str) -> dict[str, object]:
    figures: dict[str, object] = {}
    for key, value in found.items() if found is not None else []:
        try:
            percent = float(key)
        except ValueError:
            raise value.wrong("named by a percentile") from None
        if not 0 <= percent <= 100:
            raise value.wrong("named by a percentile from 0 to 100")
        figures[f"{name}_{percentile_name(percent)}_ms"] = over(value.number(), NS_PER_MS)
    return figures


FIO = ResultReader(
    "fio",
    "fio",
    (ResultForm(FORMAT, lambda head: has_keys(head, "fio version", "jobs"), read),),
    ("iops", "bytes_per_s"),
)
