"""fio's JSON, JSON+ and terse lines: a result for each job and direction.

Source: fio 3.33, stat.c; its manual, "JSON output" and "Terse output"; fio 2.2 counted in KiB and microseconds.
"""

from __future__ import annotations

import os
import re

from agents.base.errors import ParseError
from agents.readers.base.json_node import Node, has_keys, load_json
from agents.readers.base.named_result import NamedResult, Readout
from agents.readers.base.numbers import count, known_number, number, over, percentile_name
from agents.readers.base.result_reader import MAX_CHARS, ResultForm, ResultReader, Source, nothing_in

FORMAT = "fio-json"
NS_PER_MS = 1e6
US_PER_MS = 1e3
KIB = 1024
_DIRECTIONS = ("read", "write", "trim", "mixed")
_PARTS = (("lat_ns", "latency"), ("clat_ns", "clat"), ("slat_ns", "slat"))
_OLD_PARTS = (("lat", "latency"), ("clat", "clat"), ("slat", "slat"))
_TERSE = re.compile(r"^[345];fio-[0-9]", re.MULTILINE)
_TERSE_PARTS = (("slat", 4), ("clat", 8), ("latency", 32))
_TERSE_MOMENTS = ("min", "max", "mean", "stdev")
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
    old = "bw_bytes" not in way and "bw" in way  # fio 2: KiB and microseconds
    moved, rate = way.at("io_bytes").count(), (way.at("bw") if old else way.at("bw_bytes")).number()
    done = moved > 0  # what was begun and failed counts as an I/O, too
    figures: dict[str, object] = {
        "iops": way.at("iops").number() if done else None,
        "bytes_per_s": rate * (KIB if old else 1) if done else None,
        "bytes": moved * (KIB if old else 1),
        "requests": way.at("total_ios").count(),
        "duration_s": over(way.at("runtime").number(), 1e3),
    }
    parts, per_ms = (_OLD_PARTS, US_PER_MS) if old else (_PARTS, NS_PER_MS)
    for moment, ours in _MOMENTS:
        for part, name in parts:
            timed = done and (name == "slat" or way.known(part, "N") != 0)  # with --disable_lat nothing was
            figures[f"{name}_{ours}_ms"] = over(way.known(part, moment), per_ms) if timed else None
    for part, name in parts:
        figures |= _percentiles(way.find(part, "percentile"), name, per_ms)
        bins = way.find(part, "bins")
        if bins is not None:
            counts = [bin_.count() for _, bin_ in bins.items()]
            figures |= {f"{name}_bins": len(counts), f"{name}_bins_total": sum(counts)}
    figures.setdefault("latency_p99_ms", None)
    return figures


def _percentiles(found: Node | None, name: str, per_ms: float) -> dict[str, object]:
    figures: dict[str, object] = {}
    for key, value in found.items() if found is not None else []:
        try:
            percent = float(key)
        except ValueError:
            raise value.wrong("named by a percentile") from None
        if not 0 <= percent <= 100:
            raise value.wrong("named by a percentile from 0 to 100")
        figures[f"{name}_{percentile_name(percent)}_ms"] = over(value.number(), per_ms)
    return figures


def read_terse(source: Source) -> Readout:
    """The lines of --output-format=terse, versions 3 to 5. Raises ParseError."""
    if len(source.text) > MAX_CHARS:
        raise ParseError(f"the text has {len(source.text)} characters; at most {MAX_CHARS} are read", line=1)
    results: list[NamedResult] = []
    version = None
    for place, line in enumerate(source.text.split("\n"), 1):
        if not _TERSE.match(line):
            continue
        cells = line.rstrip().split(";")
        version = cells[1].removeprefix("fio-")
        results += _terse_job(cells, len(results), place)
    if not results:
        raise nothing_in("line of a job", "fio --output-format=terse")
    broken = [one for one in results if one.why]
    why = f"{broken[0].benchmark}: {broken[0].why}" if broken else ""
    return Readout("fio", "fio-terse", tuple(results), version, {}, why)


def _terse_job(cells: list[str], index: int, place: int) -> list[NamedResult]:
    form = int(cells[0])
    width, ways = (47 if form == 5 else 41), _DIRECTIONS[: 2 if form == 3 else 3]
    end = 5 + width * len(ways)
    if len(cells) < end + 2:
        raise ParseError(f"line {place} has {len(cells)} fields; it is cut off", line=place)
    error = count(cells[4], "the error", place)
    params = {"job_index": index, "groupid": count(cells[3], "the group", place)}
    why = f"error {error}: {os.strerror(error) if error < 200 else 'unknown'}" if error else ""
    cpu = {
        "cpu_user_pct": known_number(cells[end].rstrip("%"), "the CPU", place),
        "cpu_system_pct": known_number(cells[end + 1].rstrip("%"), "the CPU", place),
        "error": error,
    }
    found = []
    for number_, way in enumerate(ways):
        block = cells[5 + width * number_ : 5 + width * (number_ + 1)]
        if count(block[0], "the KiB", place):
            figures = {**_terse_figures(block, place), **cpu}
            found.append(NamedResult(cells[2], figures, {**params, "direction": way}, why=why))
    nothing = {"iops": None, "bytes_per_s": None, "latency_mean_ms": None, **cpu}
    return found or [NamedResult(cells[2], nothing, {**params, "direction": None}, why=why or "the job did no I/O")]


def _terse_figures(block: list[str], place: int) -> dict[str, object]:
    figures: dict[str, object] = {
        "iops": number(block[2], "iops", place),
        "bytes_per_s": number(block[1], "the bandwidth", place) * KIB,
        "bytes": count(block[0], "the KiB", place) * KIB,
        "requests": None,
        "duration_s": over(number(block[3], "the runtime", place), 1e3),
    }
    for part, start in _TERSE_PARTS:
        for at, moment in enumerate(_TERSE_MOMENTS):
            figures[f"{part}_{moment}_ms"] = over(number(block[start + at], f"{part} {moment}", place), US_PER_MS)
    for cell in block[12:32]:
        percent, _, value = cell.partition("%=")
        if (percentile := number(percent, "a percentile", place)) > 0:
            figures[f"clat_{percentile_name(percentile)}_ms"] = over(number(value, "a percentile", place), US_PER_MS)
    figures["latency_p99_ms"] = None
    return figures


FIO = ResultReader(
    "fio",
    "fio",
    (
        ResultForm(FORMAT, lambda head: has_keys(head, "fio version", "jobs"), read),
        ResultForm("fio-terse", lambda head: _TERSE.search(head) is not None, read_terse),
    ),
    ("iops", "bytes_per_s"),
)
