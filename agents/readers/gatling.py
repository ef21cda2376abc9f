"""Gatling's stats.json and global_stats.json (to 3.12), stats.js (3.13), and the end of its console output.

Which percentile `percentiles1` is was configured, and only the console says so. Source: Gatling 3.10 to 3.14,
charts/template/GlobalStatsJsonTemplate, StatsJsTemplate, charts/report/ConsoleStatsFormatter.
"""

from __future__ import annotations

import re

from agents.base.errors import ParseError
from agents.readers.base.json_node import Node, decode, line_of, load_json
from agents.readers.base.named_result import NamedResult, Readout
from agents.readers.base.numbers import count, known_number, percentile_name
from agents.readers.base.result_reader import MAX_CHARS, ResultForm, ResultReader, Source, nothing_in

TOOL = "gatling"
MAX_DEPTH = 50
_FIGURES = (
    ("latency", "mean_ms", "meanResponseTime"),
    ("latency", "min_ms", "minResponseTime"),
    ("latency", "max_ms", "maxResponseTime"),
    ("latency", "stdev_ms", "standardDeviation"),
    ("percentiles1", "ms", "percentiles1"),
    ("percentiles2", "ms", "percentiles2"),
    ("percentiles3", "ms", "percentiles3"),
    ("percentiles4", "ms", "percentiles4"),
)
_BARE = re.compile(r"^(\s*)(type|name|path|pathFormatted|stats|contents)(\s*:)", re.MULTILINE)
_STATS_JS = re.compile(r"^\s*var\s+stats\s*=\s*(?=\{)", re.MULTILINE)
_BLOCK = re.compile(r"^---- Global Information -", re.MULTILINE)
_ROW = re.compile(
    r"> (.{1,90}?) +(?:\| +(\S+) \| +(\S+) \| +(\S+)|(\S+) \(OK=(\S+) +KO=(\S+) *\)) *",
)
_PERCENTILE = re.compile(r"response time ([0-9]{1,3}(?:\.[0-9]{1,6})?)(?:st|nd|rd|th) percentile(?: \(ms\))?")
_ERROR = re.compile(r"> (.{1,400}?) +([0-9,]{1,20}) +\( ?[0-9.,]{1,8} ?%\) *")
_NAMED = {
    "min response time": "min_ms",
    "max response time": "max_ms",
    "mean response time": "mean_ms",
    "response time std deviation": "stdev_ms",
    "std deviation": "stdev_ms",
}


def read_stats(source: Source) -> Readout:
    """js/stats.json: all requests, groups and requests. Raises ParseError."""
    return _tree(load_json(source.text, "Gatling")[0], "gatling-stats-json")


def read_global(source: Source) -> Readout:
    """js/global_stats.json: all requests. Raises ParseError."""
    node, _ = load_json(source.text, "Gatling")
    return _readout("gatling-global-stats-json", [_result(node, node.at("name").text(), "ALL")], {})


def read_js(source: Source) -> Readout:
    """js/stats.js: the object that the script begins with, whose names bear no quotes. Raises ParseError."""
    text = source.text
    if len(text) > MAX_CHARS:
        raise ParseError(f"the text has {len(text)} characters; at most {MAX_CHARS} are read", line=1)
    start = _STATS_JS.search(text)
    if start is None:
        raise nothing_in("'var stats ='", "Gatling (js/stats.js)", line=1)
    quoted = text[: start.end()] + _BARE.sub(r'\1"\2"\3', text[start.end() :])
    value, _ = decode(quoted, start.end(), "Gatling")
    return _tree(Node(value), "gatling-stats-js")


def _tree(root: Node, form: str) -> Readout:
    if root.find("stats", "numberOfRequests") is None:
        raise ParseError(
            "there are no figures in the file (stats > numberOfRequests is missing)",
            hint="Gatling 3.14 writes them to its console and to index.html only: give the console's output.",
        )
    results = [_result(root.at("stats"), root.at("name").text(), "ALL")]
    _below(root, results, 0)
    return _readout(form, results, {})


def _below(node: Node, results: list[NamedResult], depth: int) -> None:
    if depth > MAX_DEPTH:
        raise ParseError(f"{node.path[:200]} is nested too deeply", hint="Is this a file of Gatling?")
    contents = node.find("contents")
    for _, child in contents.items() if contents is not None else []:
        name = child.known_text("path") or child.at("name").text()
        results.append(_result(child.at("stats"), name, child.at("type").text()))
        _below(child, results, depth + 1)


def _value(node: Node, name: str, which: str) -> float | None:
    """Numbers stand in the script as texts, with "-" for none."""
    found = node.at(name).find(which)
    if found is None:
        return None
    text = found.value
    return _shown(text, found.path) if isinstance(text, str) else found.number()


def _result(stats: Node, name: str, kind: str) -> NamedResult:
    def known(what: str, which: str) -> float | None:
        return _value(stats, what, which)

    good = known("numberOfRequests", "ok")
    figures: dict[str, object] = {
        "requests": known("numberOfRequests", "total"),
        "requests_ok": good,
        "errors_total": known("numberOfRequests", "ko"),
        "throughput_rps": known("meanNumberOfRequestsPerSecond", "total"),
        "throughput_ok_rps": known("meanNumberOfRequestsPerSecond", "ok"),
    }
    for what, unit, theirs in _FIGURES:
        if theirs in stats:
            figures[f"{what}_{unit}"] = known(theirs, "total")
            figures[f"{what}_ok_{unit}"] = known(theirs, "ok")
    return NamedResult(name, figures, {"type": kind}, why="" if good else "every request failed")


def read_console(source: Source) -> Readout:
    """The last block "Global Information" of the console. Raises ParseError."""
    text = source.text
    if len(text) > MAX_CHARS:
        raise ParseError(f"the text has {len(text)} characters; at most {MAX_CHARS} are read", line=1)
    starts = [match.start() for match in _BLOCK.finditer(text)]
    if not starts:
        raise nothing_in("block 'Global Information'", "Gatling")
    first = line_of(text, starts[-1])
    figures: dict[str, object] = {}
    errors: dict[str, int] = {}
    section = ""
    for place, line in enumerate(text[starts[-1] :].split("\n"), first):
        if line.startswith("===="):
            break
        if line.startswith("---- "):
            section = line[5:].split(" --", 1)[0].strip()
        elif len(line) > 2000:
            continue
        elif section == "Errors":
            _take_error(line, place, errors)
        elif section == "Global Information" and (match := _ROW.fullmatch(line)):
            figures |= _row(match[1].strip(), [cell for cell in match.groups()[1:] if cell is not None], place)
    if "requests" not in figures:
        raise nothing_in("'request count'", "Gatling", line=first)
    why = "" if figures.get("requests_ok") else "every request failed"
    return _readout("gatling-console", [NamedResult("Global Information", figures, why=why)], {"errors": errors})


def _row(name: str, cells: list[str], place: int) -> dict[str, object]:
    total, good, bad = (_shown(cell, name, place) for cell in cells)
    plain = name.removesuffix(" (ms)")
    if plain == "request count":
        return {"requests": total, "requests_ok": good or 0, "errors_total": bad or 0}
    if name in ("mean throughput (rps)", "mean requests/sec"):
        return {"throughput_rps": total, "throughput_ok_rps": good}
    if match := _PERCENTILE.fullmatch(name):
        percentile = percentile_name(float(match[1]))
        return {f"latency_{percentile}_ms": total, f"latency_ok_{percentile}_ms": good}
    if plain in _NAMED:
        return {f"latency_{_NAMED[plain]}": total, f"latency_ok_{_NAMED[plain]}": good}
    return {}


def _take_error(line: str, place: int, errors: dict[str, int]) -> None:
    """A message with its count; what did not fit stands on the next lines."""
    if match := _ERROR.fullmatch(line):
        errors[match[1]] = count(match[2].replace(",", ""), "the count of an error", place)
    elif line.strip() and errors and not line.startswith((">", "-", "=")):
        last, seen = errors.popitem()
        errors[last + line.strip()] = seen


def _shown(text: str, what: str, place: int | None = None) -> float | None:
    """A number with commas between thousands; "-" is None."""
    return known_number(text.replace(",", "") if re.search(r"[0-9],[0-9]{3}(?![0-9])", text) else text, what, place)


def _readout(form: str, results: list[NamedResult], beside: dict[str, object]) -> Readout:
    return Readout(TOOL, form, tuple(results), None, beside, results[0].why)


def _is_stats(head: str) -> bool:
    return re.match(r'\s*\{\s*"type"\s*:\s*"GROUP"', head) is not None and '"numberOfRequests"' in head


def _is_global(head: str) -> bool:
    return re.match(r'\s*\{\s*"name"\s*:', head) is not None and '"numberOfRequests"' in head


GATLING = ResultReader(
    TOOL,
    "Gatling",
    (
        ResultForm("gatling-stats-json", _is_stats, read_stats),
        ResultForm("gatling-global-stats-json", _is_global, read_global),
        ResultForm("gatling-stats-js", lambda head: _STATS_JS.search(head) is not None, read_js),
        ResultForm(
            "gatling-console",
            lambda head: (
                _BLOCK.search(head) is not None or re.search(r"^Simulation \S+ started", head, re.M) is not None
            ),
            read_console,
        ),
    ),
    ("throughput_rps",),
)
