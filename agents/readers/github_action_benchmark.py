"""The custom JSON of github-action-benchmark: a list of name, unit, value.

What is better stands in the name of its tool, customBiggerIsBetter or customSmallerIsBetter, which many give the file,
too. Source: its README, "customBiggerIsBetter and customSmallerIsBetter".
"""

from __future__ import annotations

import re
from typing import Literal

from agents.readers.base.json_node import Node, first_names, load_json
from agents.readers.base.named_result import Measure, NamedResult, Readout
from agents.readers.base.result_reader import ResultForm, ResultReader, Source

TOOL = "github-action-benchmark"
FORMAT = "github-action-benchmark-json"
_KNOWN = {"name", "unit", "value", "range", "extra"}
_NAMED = re.compile(r"(bigger|smaller)[ _-]?is[ _-]?better", re.IGNORECASE)
Direction = Literal["bigger is better", "smaller is better"]


def read(source: Source) -> Readout:
    """The entries of the list; what is better comes from the file's name, if from anywhere. Raises ParseError."""
    document, _ = load_json(source.text, TOOL)
    named = _NAMED.search(re.split(r"[/\\]", source.file_name)[-1])
    direction: Direction | None = None
    if named:
        direction = "bigger is better" if named[1].lower() == "bigger" else "smaller is better"
    results = tuple(_entry(one, direction) for one in document.elements())
    return Readout(TOOL, FORMAT, results, None, {}, "" if results else "there is no benchmark in it")


def _entry(one: Node, direction: Direction | None) -> NamedResult:
    unit = one.at("unit").text()
    about: dict[str, object] = {"range": _plain(one.find("range")), "extra": one.known_text("extra")}
    measure = Measure(one.at("value").number(), unit, direction, about)
    return NamedResult(one.at("name").text(), {}, measures={"value": measure})


def _plain(found: Node | None) -> object:
    if found is None:
        return None
    return found.text() if isinstance(found.value, str) else found.number()


def _looks_like(head: str) -> bool:
    names = first_names(head)
    return {"name", "unit", "value"} <= names <= _KNOWN


GITHUB_ACTION_BENCHMARK = ResultReader(
    TOOL,
    TOOL,
    (ResultForm(FORMAT, _looks_like, read),),
    (),
)
