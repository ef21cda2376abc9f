"""bin/check-docstrings sees what a docstring leaves out, and nothing where it does not."""

from __future__ import annotations

import ast
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parent.parent / "bin" / "check-docstrings"


@pytest.fixture(scope="module")
def check() -> Any:
    loader = SourceFileLoader("check_docstrings", str(SCRIPT))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("code", "lacking"),
    [
        ("def f(): pass", ["one sentence first"]),
        ("def f(value: float) -> str:\n    'What it says.'", ["unit of value"]),
        ("def f(value_ms: float) -> str:\n    'What it says.'", []),
        ("def f(value: float) -> str:\n    'The value, in its own unit.'", []),
        ("def f(rows: NDArray) -> str:\n    'What the rows are.'", []),
        ("def f(rows: NDArray) -> str:\n    'What they are.'", ["unit of rows", "shape of rows"]),
        ("def f() -> float:\n    'How long. See docs/history.md.'", ["unit of what is returned"]),
        ("def f() -> float:\n    'How long, in seconds. See docs/history.md.'", []),
        ("def f() -> int:\n    'How many.'", ["source"]),
        ("def f() -> int:\n    'How many (Holm 1979).'", []),
        ("def f() -> str:\n    'A word.'\n    raise ValueError('no')", ["raises ValueError"]),
        ("def f() -> str:\n    'A word. ValueError: there is none.'\n    raise ValueError('no')", []),
    ],
)
def test_what_a_docstring_of_the_analysis_leaves_out_is_named(check: Any, code: str, lacking: list[str]) -> None:
    (_, function), *_ = check.functions(ast.parse(code))

    assert check.lacks(function, "", "analysis", None) == lacking


def test_a_reader_names_the_tool_whose_words_it_reads(check: Any) -> None:
    tool = check.tool_words("agents/drivers/wrk/text_report.py", "read_text")
    (_, function), *_ = check.functions(ast.parse("def read_text(text: str) -> str:\n    'The report.'"))

    assert check.lacks(function, "What wrk prints.", "agents", tool) == []
    assert check.lacks(function, "What somebody prints.", "agents", tool) == ["source"]
