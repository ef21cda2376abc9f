"""Bencher Metric Format: benchmark -> measure -> value with its bounds. It has no units and no directions.

Source: Bencher's documentation, "Bencher Metric Format (BMF) JSON".
"""

from __future__ import annotations

import re

from agents.readers.base.json_node import Node, load_json
from agents.readers.base.named_result import Measure, NamedResult, Readout
from agents.readers.base.result_reader import ResultForm, ResultReader, Source

FORMAT = "bmf-json"
_BOUNDS = ("lower_value", "upper_value")
_TEXT = r'"(?:[^"\\]|\\.){0,2000}"'
_HEAD = re.compile(
    rf'\s*\{{\s*{_TEXT}\s*:\s*\{{\s*{_TEXT}\s*:\s*\{{\s*"(?:value|lower_value|upper_value)"\s*:\s*[-0-9]'
)


def read(source: Source) -> Readout:
    """Every benchmark of the object. Raises ParseError."""
    document, _ = load_json(source.text, "Bencher")
    results = []
    for name, one in document.items():
        measures = {measure: _measure(value) for measure, value in one.items()}
        results.append(NamedResult(name, {}, measures=measures, why="" if measures else "it has no measure"))
    return Readout("bmf", FORMAT, tuple(results), None, {}, "" if results else "there is no benchmark in it")


def _measure(node: Node) -> Measure:
    for name in dict(node.items()):
        if name not in ("value", *_BOUNDS):
            raise node.at(name).wrong("absent: a measure has value, lower_value and upper_value only")
    return Measure(node.at("value").number(), more={bound: node.known(bound) for bound in _BOUNDS})


def _looks_like(head: str) -> bool:
    """k6 writes the value of its checks in the same way, under `metrics`."""
    return _HEAD.match(head) is not None and re.match(r'\s*\{\s*"(?:metrics|root_group)"', head) is None


BMF = ResultReader(
    "bmf",
    "Bencher Metric Format",
    (ResultForm(FORMAT, _looks_like, read),),
    (),
)
