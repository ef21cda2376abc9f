"""Every tool with made-up arguments that fit its schema and that do not: an answer or words, never a failure.

BENCHHUB_FUZZ_EXAMPLES=200 asks each tool more often.
"""

from __future__ import annotations

import logging
import os
from typing import Any

import pytest

from experiments.mcp.fitting import MAX_CHARS
from experiments.mcp.tools import LAUNCHING, READING
from experiments.models import Host, Member, Recipe, Run
from tests.experiments.api.test_schemathesis import same_connection
from tests.experiments.mcp.conftest import MakeCaller
from tests.properties import HealthCheck, given, settings, st

EXAMPLES = int(os.environ.get("BENCHHUB_FUZZ_EXAMPLES", "6"))
KNOWN = st.sampled_from(["sut-1", "limits", "home page", "tomcat", 1, "a" * 64, "-number", "latency_p99_ms"])
ANYTHING = st.none() | st.booleans() | st.integers() | st.text(max_size=30) | KNOWN | st.lists(st.text(), max_size=3)


def fitting(said: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values of a property's type, those that exist among them; lengths and bounds are not kept to."""
    if "enum" in said:
        return st.sampled_from(said["enum"])
    if "anyOf" in said:
        return st.one_of(*map(fitting, said["anyOf"]))
    kinds: dict[str, st.SearchStrategy[Any]] = {
        "integer": st.sampled_from([1, 2, 50, 2**31 - 1]) | st.integers(),
        "number": st.floats(),
        "boolean": st.booleans(),
        "null": st.none(),
        "object": st.dictionaries(st.text(max_size=9), st.text(max_size=9) | st.integers(), max_size=2),
    }
    if said.get("type") == "array":
        return st.lists(fitting(said["items"]), max_size=4)
    return kinds.get(str(said.get("type")), KNOWN | st.text(max_size=40))


def values_of(schema: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Arguments of the right types; and with the same names anything."""
    there = schema["properties"]
    needed = {name: fitting(there[name]) for name in schema.get("required", ())}
    more = {name: fitting(one) for name, one in there.items() if name not in needed}
    names = st.sampled_from([*there, "x"])
    return st.fixed_dictionaries(needed, optional=more) | st.dictionaries(names, ANYTHING, max_size=4)


@pytest.mark.parametrize("tool", [*READING, *LAUNCHING], ids=lambda tool: tool.name)
def test_made_up_arguments_get_an_answer_or_words(
    tool: Any, admin: Member, stock: dict[str, Any], make_caller: MakeCaller, settings: Any,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    settings.BENCHHUB_MCP_LAUNCH = True
    caller = make_caller(admin, "read", "launch")
    before = [model.objects.count() for model in (Run, Host, Recipe)]
    ask(tool, caller)
    assert [model.objects.count() for model in (Run, Host, Recipe)] == before
    assert [one.getMessage() for one in caplog.records if one.levelno >= logging.ERROR] == []


def ask(tool: Any, caller: Any) -> None:
    @settings(max_examples=EXAMPLES, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(values_of(tool.arguments.model_json_schema()))
    def once(arguments: dict[str, Any]) -> None:
        text, _ = caller.said(tool.name, **arguments)
        assert 0 < len(text) <= MAX_CHARS
        assert "BenchHub failed" not in text, text

    with same_connection():
        once()
