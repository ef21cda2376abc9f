"""Taurus' final statistics, CSV and XML: seconds, and a `throughput` that is the number of samples.

Source: Taurus 1.17, bzt/modules/reporting.py (FinalStatus).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from agents.base.errors import ParseError
from agents.formats.xml_document import XmlError, children, local_name, parse_xml
from agents.readers.base.named_result import NamedResult, Readout
from agents.readers.base.numbers import count, known_number, percentile_name, times
from agents.readers.base.result_reader import ResultForm, ResultReader, Source
from agents.readers.base.table import read_table

TOOL = "taurus"
_NEEDED = ("label", "avg_rt", "succ", "fail", "throughput")
_TIMES = (
    ("latency_mean_ms", "avg_rt"),
    ("latency_stdev_ms", "stdev_rt"),
    ("time_to_first_byte_mean_ms", "avg_lt"),
    ("connect_mean_ms", "avg_ct"),
)


def read_csv(source: Source) -> Readout:
    """The rows of dump-csv. Raises ParseError."""
    rows = read_table(source.text, _NEEDED, "Taurus")
    return _readout("taurus-final-stats-csv", [_result(row.text("label"), row.cells, row.line) for row in rows], {})


def read_xml(source: Source) -> Readout:
    """The groups of dump-xml. Raises ParseError."""
    try:
        root = parse_xml(source.text.encode("utf-8", "replace"))
    except XmlError as error:
        raise ParseError(error.message, hint="Is the file cut off?", line=1) from error
    if local_name(root) != "FinalStatus":
        raise ParseError("this is no file of Taurus: the element FinalStatus is missing", line=1)
    duration_s, results = None, []
    for element in children(root):
        if local_name(element) == "TestDuration":
            duration_s = known_number((element.text or "").strip(), "TestDuration")
        elif local_name(element) == "Group":
            cells: dict[str, str] = {}
            for child in children(element):
                name, param = local_name(child), child.get("param")
                cells[f"{name}_{param}" if param is not None else name] = str(child.get("value", ""))
            results.append(_result(str(element.get("label", "")), cells, None))
    return _readout("taurus-final-stats-xml", results, {"duration_s": duration_s})


def _result(label: str, cells: Mapping[str, str], line: int | None) -> NamedResult:
    def known(column: str) -> float | None:
        return known_number(cells.get(column, ""), column, line)

    good, bad = (count(cells.get(column, "").strip(), column, line) for column in ("succ", "fail"))
    figures: dict[str, object] = {
        "requests": count(cells.get("throughput", "").strip(), "throughput", line),
        "requests_ok": good,
        "errors_total": bad,
        "throughput_rps": None,
        "concurrency": known("concurrency"),
        "bytes": known("bytes"),
        **{name: times(known(column), 1e3) for name, column in _TIMES},
    }
    for column in cells:
        if match := re.fullmatch(r"perc_([0-9]{1,3}(?:\.[0-9]{1,6})?)", column, re.ASCII):
            figures[f"latency_{percentile_name(float(match[1]))}_ms"] = times(known(column), 1e3)
    codes = {name[3:]: known(name) for name in cells if name.startswith("rc_")}
    figures["status_codes"] = {code: int(seen) for code, seen in codes.items() if seen}
    why = "" if good else "every sample failed" if bad else "there was no sample"
    return NamedResult(label or "(all)", figures, why=why)


def _readout(form: str, results: list[NamedResult], beside: dict[str, object]) -> Readout:
    if not results:
        raise ParseError("there is no row in the statistics", hint="Give the whole file of Taurus.")
    why = results[-1].why if all(one.why for one in results) else ""
    return Readout(TOOL, form, tuple(results), None, beside, why)


def _is_csv(head: str) -> bool:
    first = head.lstrip().split("\n", 1)[0].split(",")
    return first[0] == "label" and set(_NEEDED) <= {name.strip() for name in first}


TAURUS = ResultReader(
    TOOL,
    "Taurus",
    (
        ResultForm("taurus-final-stats-csv", _is_csv, read_csv),
        ResultForm("taurus-final-stats-xml", lambda head: "<FinalStatus" in head[:2000], read_xml),
    ),
    ("latency_mean_ms",),
)
