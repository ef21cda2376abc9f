"""The description in the words that other people's tools understand.

What ninja and pydantic write is valid; validators, linters and generators of clients stumble over parts of it all the
same. Each function here mends one thing for all operations and says which tool needed it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

_SHAPES = "#/components/schemas/"
_TAGS: Mapping[str, str] = {
    "alerts": "Changes of level, who looks after them, and rules of the team",
    "annotations": "Notes on charts",
    "applications": "What is served and how it is started",
    "audit": "Who changed what",
    "baselines": "Runs with a name to compare with",
    "bisections": "Which change made it slower",
    "compare": "Runs and machines beside each other",
    "experiments": "Experiments, their verdicts and reports",
    "hosts": "Hosts, their keys and state",
    "imports": "Files of tools that ran elsewhere",
    "library": "Experiments that are shipped",
    "metrics": "Figures, their units and directions",
    "notes": "What people wrote about runs and experiments",
    "profiles": "Hardware that hosts had",
    "prometheus": "What a team's Prometheus is asked after each run",
    "queue": "What runs and what waits",
    "recipes": "What is changed on a host before it is measured",
    "reservations": "Hosts kept for one member",
    "results": "Figures that were measured elsewhere",
    "runs": "Runs: start, find, follow, read",
    "schedules": "What is launched by the clock",
    "search": "Everything by its name",
    "searches": "The largest rate that a server sustains",
    "series": "Histories of figures",
    "shares": "Links for people without an account",
    "team": "Who I am, the team and its members",
    "thresholds": "The team's limits of validity and of histories",
    "timers": "Tables of times of a run",
    "tokens": "Tokens of this API",
    "trash": "What was deleted and can be put back",
    "tunings": "The best configuration of a recipe",
    "views": "Saved filters of the list of runs",
    "webhooks": "Who is told what happens",
    "workloads": "The load and its phases",
}


def make_standard(schema: dict[str, Any]) -> None:
    """Mend the whole description in place; it says the same as before."""
    for node in _nodes(schema["components"]["schemas"]):
        _tuple_as_list(node)
    for methods in schema["paths"].values():
        for said in methods.values():
            for node in _nodes({key: said[key] for key in ("parameters", "requestBody", "responses") if key in said}):
                _tuple_as_list(node)
            said.setdefault("description", f"{said['summary']}.")  # Spectral wants one of every operation
    _insist_on_tags_of_unions(schema)
    for shape in schema["components"]["schemas"].values():
        for name, said in shape.get("properties", {}).items():
            shape["properties"][name] = _one_text(_plain_reference(said))
    _remove_unused_shapes(schema)
    names = {tag for methods in schema["paths"].values() for said in methods.values() for tag in said.get("tags", ())}
    schema["tags"] = [{"name": name, "description": _TAGS[name]} for name in sorted(names)]


def _nodes(value: Any) -> Iterator[dict[str, Any]]:
    """Every object of the description itself: what is below an example is data."""
    if isinstance(value, dict):
        yield value
        for key, one in value.items():
            if key not in ("example", "examples", "default", "enum", "const"):
                yield from _nodes(one)
    elif isinstance(value, list):
        for one in value:
            yield from _nodes(one)


def _tuple_as_list(node: dict[str, Any]) -> None:
    """Two numbers are a list of two numbers: `prefixItems` alone is an error to Spectral and unknown to generators."""
    places = node.get("prefixItems")
    if not isinstance(places, list):
        return
    del node["prefixItems"]
    kinds = list({json.dumps(one, sort_keys=True): one for one in places}.values())
    node["items"] = kinds[0] if len(kinds) == 1 else {"anyOf": kinds}


def _one_text(said: dict[str, Any]) -> dict[str, Any]:
    """A text or the empty text is a text: a union of two kinds of text has no name in Go."""
    members = said.get("anyOf", ())
    if len(members) != 2 or {"const": "", "type": "string"} not in members:
        return said
    (other,) = (one for one in members if one != {"const": "", "type": "string"})
    if other.get("type") != "string":
        return said
    if "pattern" in other:
        other = {**other, "pattern": f"^$|{other['pattern']}"}
    return {**{key: value for key, value in said.items() if key != "anyOf"}, **other}


def _plain_reference(said: dict[str, Any]) -> dict[str, Any]:
    """`allOf` around one reference is the reference; a default that is an object has no literal in Go or Python."""
    if len(said.get("allOf", ())) == 1:
        rest = {key: value for key, value in said.items() if key != "allOf"}
        said = {**said["allOf"][0], **rest}
    if "$ref" in said and isinstance(said.get("default"), dict):
        text = said.get("description") or "What is left out is as its own shape says."
        said = {**{key: value for key, value in said.items() if key != "default"}, "description": text}
    return said


def _insist_on_tags_of_unions(schema: dict[str, Any]) -> None:
    """The field that tells the members of a union apart is needed in each of them: without it none can be told."""
    shapes = schema["components"]["schemas"]
    for node in list(_nodes(schema)):
        union = node.get("discriminator")
        if not isinstance(union, dict) or "mapping" not in union:
            continue
        tag = union["propertyName"]
        for reference in union["mapping"].values():
            shape = shapes[reference.removeprefix(_SHAPES)]
            shape["properties"][tag].pop("default", None)
            if tag not in shape.setdefault("required", []):
                shape["required"].append(tag)


def _remove_unused_shapes(schema: dict[str, Any]) -> None:
    """What holds the parameters of an address was taken apart into them, and nothing refers to it any more."""
    shapes = schema["components"]["schemas"]
    while True:
        used = {node["$ref"] for node in _nodes(schema) if isinstance(node.get("$ref"), str)}
        unused = [name for name in shapes if f"{_SHAPES}{name}" not in used]
        if not unused:
            return
        for name in unused:
            del shapes[name]
