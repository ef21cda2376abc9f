"""HammerDB's log, and the answer of its web service: a result for each "TEST RESULT", and query sets of TPROC-H.

Source: HammerDB 3 to 5, modules/*oltp (puts "TEST RESULT : ..."), *olap, and its manual.
"""

from __future__ import annotations

import re

from agents.base.errors import ParseError
from agents.readers.base.json_node import Node, load_json
from agents.readers.base.named_result import NamedResult, Readout
from agents.readers.base.numbers import known_number, number, percentile_name
from agents.readers.base.result_reader import MAX_CHARS, ResultForm, ResultReader, Source, nothing_in

TOOL = "hammerdb"
_NEW = re.compile(r"TEST RESULT : System achieved ([0-9]{1,15}) NOPM from ([0-9]{1,15}) (\S.{0,40}?) TPM")
_OLD = re.compile(r"TEST RESULT : System achieved ([0-9]{1,15}) (\S.{0,40}?) TPM at ([0-9]{1,15}) NOPM")
_USERS = re.compile(r"(?:^|:)([0-9]{1,7}) Active Virtual Users configured")
_QUERIES = re.compile(r"Completed ([0-9]{1,6}) query set\(s\) in ([0-9]{1,12}(?:\.[0-9]{1,9})?) seconds")
_GEOMETRIC = re.compile(r"Geometric mean of query times returning rows \(([0-9]{1,4})\) is ([0-9.]{1,20})")
_FAILED = re.compile(r"(?:Vuser [0-9]{1,7}:FINISHED FAILED|Error in Virtual User [0-9]{1,7}: .{1,1000})")
_VERSION = re.compile(r"HammerDB CLI v([0-9.]{1,20})")
_STAMP = re.compile(r"^Timestamp [0-9]{1,7} @ ")
_PROCEDURE = re.compile(r">>>>> PROC: (\S{1,40})")
_LABEL = re.compile(r"(CALLS|MIN|AVG|MAX|P99|P95|P50|SD)(?:\[ms\])?: ([0-9.]{1,20})(?:ms)?")
_MOMENT = {"MIN": "min", "AVG": "mean", "MAX": "max", "SD": "stdev"}


def read_text(source: Source) -> Readout:
    """The log or the output of hammerdbcli. Raises ParseError."""
    if len(source.text) > MAX_CHARS:
        raise ParseError(f"the text has {len(source.text)} characters; at most {MAX_CHARS} are read", line=1)
    return _lines(source.text.split("\n"), "hammerdb-text")


def read_json(source: Source) -> Readout:
    """What the web service answers: a list of "user", "line". Raises ParseError."""
    document, _ = load_json(source.text, "HammerDB")
    nodes = (
        document.elements() if isinstance(document.value, list) else [n for _, v in document.items() for n in _flat(v)]
    )
    return _lines([node.text() for node in nodes if isinstance(node.value, str)], "hammerdb-json")


def _flat(node: Node) -> list[Node]:
    return node.elements() if isinstance(node.value, list) else [node]


def _lines(lines: list[str], form: str) -> Readout:
    results: list[NamedResult] = []
    failures: list[str] = []
    procedures: dict[str, dict[str, object]] = {}
    users = version = procedure = None
    for place, line in enumerate(lines, 1):
        if len(line) > 4000 or _STAMP.match(line):
            continue
        if match := _USERS.search(line):
            users = int(match[1])
        elif (match := _VERSION.search(line)) and version is None:
            version = match[1]
        elif match := _FAILED.search(line):
            failures.append(match[0])
        elif match := _PROCEDURE.search(line):
            procedure = procedures.setdefault(match[1], {})
        elif found := _test(line, place, users):
            results.append(found)
        elif procedure is not None:
            for label in _LABEL.finditer(line):
                procedure[_figure(label[1])] = known_number(label[2], label[1], place)
    results += [NamedResult(name, figures, {"virtual_users": users}) for name, figures in procedures.items() if figures]
    if not results and not failures:
        raise nothing_in("TEST RESULT", "HammerDB")
    beside: dict[str, object] = {"errors": failures[:100]} if failures else {}
    return Readout(TOOL, form, tuple(results), version, beside, "" if results else failures[0])


def _figure(label: str) -> str:
    if label == "CALLS":
        return "calls"
    return f"latency_{_MOMENT.get(label) or percentile_name(int(label[1:]))}_ms"


def _test(line: str, place: int, users: int | None) -> NamedResult | None:
    if match := _NEW.search(line):
        nopm, tpm, database = match[1], match[2], match[3]
    elif match := _OLD.search(line):
        tpm, database, nopm = match[1], match[2], match[3]
    elif match := _GEOMETRIC.search(line):
        figures: dict[str, object] = {"time_geometric_mean_s": number(match[2], "geometric mean", place)}
        return NamedResult("TPROC-H geometric mean", figures, {"queries": int(match[1])})
    elif match := _QUERIES.search(line):
        return NamedResult(
            "TPROC-H query sets", {"time_total_s": number(match[2], "seconds", place)}, {"query_sets": int(match[1])}
        )
    else:
        return None
    figures = {"new_orders_per_min": int(nopm), "transactions_per_min": int(tpm)}
    why = "" if int(nopm) else "no new order was done"
    return NamedResult("TPROC-C", figures, {"database": database, "virtual_users": users}, why=why)


def _is_text(head: str) -> bool:
    return re.search(r"^(?:HammerDB CLI v|Vuser [0-9]+:|Hammerdb Log)", head, re.MULTILINE) is not None


def _is_json(head: str) -> bool:
    start = head.lstrip()[:1]
    known = "TEST RESULT : System achieved" in head or "Active Virtual Users configured" in head
    return start in ("[", "{") and (known or ("Vuser " in head and "FINISHED" in head))


HAMMERDB = ResultReader(
    TOOL,
    "HammerDB",
    (
        ResultForm("hammerdb-text", lambda head: _is_text(head) and not _is_json(head), read_text),
        ResultForm("hammerdb-json", _is_json, read_json),
    ),
    ("new_orders_per_min", "time_geometric_mean_s", "time_total_s", "latency_mean_ms"),
)
