"""iperf3's JSON (-J, --json-stream): what arrived is the figure. Source: iperf 3.12 and 3.17, iperf_api.c."""

from __future__ import annotations

import re

from agents.base.errors import ParseError
from agents.readers.base.json_node import Node, decode, has_keys, line_of, load_json
from agents.readers.base.named_result import NamedResult, Readout
from agents.readers.base.result_reader import MAX_CHARS, ResultForm, ResultReader, Source, nothing_in

FORMAT = "iperf3-json"
_STREAM = re.compile(r'\s*\{\s*"event"\s*:\s*"(?:start|interval|end|error)"')
_SUMS = (("sum_received", "sum_sent", "sum"), ("sum_received_bidir_reverse", "sum_sent_bidir_reverse", "sum_bidir"))


def read(source: Source) -> Readout:
    """The sums of a test. Raises ParseError."""
    document = _events(source.text) if _is_stream(source.head) else load_json(source.text, "iperf3")[0]
    error = document.known_text("error")
    version = (document.known_text("start", "version") or "").removeprefix("iperf ").strip() or None
    end = document.at("end")
    results = []
    for back, (received, sent, old) in enumerate(_SUMS):
        if received in end or sent in end or old in end:
            results.append(_sum(document, end.find(received), end.find(sent) or end.find(old), back=bool(back)))
    if not results and error is None:
        raise nothing_in("sum of a test", "iperf3 -J")
    return Readout("iperf3", FORMAT, tuple(results), version, {"error": error}, error or "")


def _is_stream(head: str) -> bool:
    return _STREAM.match(head) is not None


def _events(text: str) -> Node:
    """The document that the lines of --json-stream are (3.17 and later). Raises ParseError."""
    if len(text) > MAX_CHARS:
        raise ParseError(f"the text has {len(text)} characters; at most {MAX_CHARS} are read", line=1)
    whole: dict[str, object] = {"intervals": []}
    intervals, at = [], 0
    for line in text.split("\n"):
        if line.startswith("{"):
            event = Node(decode(text, at, "iperf3")[0], f"line {line_of(text, at)}")
            kind, data = event.at("event").text(), event.find("data")
            if kind == "interval":
                intervals.append(data.value if data is not None else None)
            elif data is not None:
                whole[kind] = data.value
        at += len(line) + 1
    return Node({**whole, "intervals": intervals})


def _sum(document: Node, received: Node | None, sent: Node | None, *, back: bool) -> NamedResult:
    test, cpu = document.find("start", "test_start"), document.find("end", "cpu_utilization_percent")
    protocol = test.known_text("protocol") if test else None
    if document.find("start", "accepted_connection") is not None:  # a server knows what it did itself, and writes 0
        received, sent = _seen(received), _seen(sent)
    got, left = received or Node({}), sent or Node({})
    figures: dict[str, object] = {
        "bits_per_s": got.known("bits_per_second"),
        "bytes": got.known_count("bytes"),
        "duration_s": got.known("seconds"),
        "sent_bits_per_s": left.known("bits_per_second"),
        "sent_bytes": left.known_count("bytes"),
        "retransmits": left.known_count("retransmits"),
    }
    if protocol == "UDP":
        lossy = received or left
        figures |= {
            "jitter_ms": lossy.known("jitter_ms"),
            "lost_packets": lossy.known("lost_packets"),
            "packets": lossy.known_count("packets"),
            "lost_pct": lossy.known("lost_percent"),
        }
    figures |= {
        "cpu_host_pct": cpu.known("host_total") if cpu else None,
        "cpu_remote_pct": cpu.known("remote_total") if cpu else None,
        "interval_count": len(document.at("intervals").elements()),
    }
    params = {
        "protocol": protocol,
        "streams": test.known_count("num_streams") if test else None,
        "reverse": bool(test and test.known("reverse")) != back,
        "offered_bits_per_s": (test.known("target_bitrate") if test else None) or None,
    }
    why = "" if figures["bits_per_s"] else "nothing arrived" if received else "it does not say what arrived"
    return NamedResult("sum_bidir_reverse" if back else "sum", figures, params, why=why)


def _seen(sums: Node | None) -> Node | None:
    return sums if sums is not None and sums.known("bytes") else None


IPERF3 = ResultReader(
    "iperf3",
    "iperf3",
    (
        ResultForm(
            FORMAT,
            lambda head: (
                (has_keys(head, "start", "version") and '"iperf ' in head) or (_is_stream(head) and '"iperf ' in head)
            ),
            read,
        ),
    ),
    ("bits_per_s",),
)
