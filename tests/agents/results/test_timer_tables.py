"""Tables of timers: the published ones, the three forms, and what is no such table."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from agents.base.errors import ParseError
from agents.results.timer_tables import read_timer_table
from tests.agents.mutations import mutate

CASES = Path(__file__).parents[1] / "cases" / "timer_tables"
NAMES = ("timers-container", "timers-methods")
HEADER = "Action  Total (ms)  Count  T/C (ms)  Percent\n"


@pytest.mark.parametrize("name", NAMES)
def test_the_published_tables_are_read_whole(name: str) -> None:
    expected: dict[str, Any] = json.loads((CASES / f"{name}.expected.json").read_text())["expected"]
    rows = read_timer_table((CASES / f"{name}.txt").read_text())
    assert len(rows) == expected["row_count"]
    for row, want in zip(rows, expected["rows"], strict=True):
        assert (row.cpus, row.action, row.total_ms, row.count) == (
            want["cpus"],
            want["action"],
            want["total_ms"],
            want["count"],
        )
        assert (row.ms_per_count, row.percent) == (want["ms_per_count"], want["percent"])
        assert row.computed_ms_per_count == pytest.approx(want["ms_per_count_computed"], abs=5e-5)
    differing = [{"cpus": row.cpus, "action": row.action} for row in rows if row.average_differs]
    wanted = expected["printed_average_differs_from_total_over_count"]
    assert differing == [{"cpus": one["cpus"], "action": one["action"]} for one in wanted]


@pytest.mark.parametrize(
    "text",
    [
        HEADER + "-----  ----  ---  ---  ---\nread all  1,200  400  3  12.5%\n",
        "action,total_ms,count,t/c,percent\nread all,1200,400,3,12.5\n".replace("total_ms", "total ms"),
        'Action;Total;Count;T/C;Percent\n"read all";1200;400;3.00;12.5 %\n',
        "|Action | Total (ms) | Count | T/C (ms) | Percent|\n|--|--:|--:|--:|--|\n|read all|1200|400|3.0|12.5%|",
        "Action\tTotal (s)\tCount\tT/C (us)\tPercent\nread all\t1.2\t400\t3000\t12.5\n",
        "Total Count T/C Percent Action\n1200 400 3.0 12.5% read all\n",
    ],
)  # fmt: skip
def test_white_space_csv_and_markdown_give_the_same_row(text: str) -> None:
    (row,) = read_timer_table(text)
    assert (row.action, row.count, row.percent, row.cpus) == ("read all", 400, 12.5, None)
    assert row.total_ms == pytest.approx(1200)
    assert row.ms_per_count == pytest.approx(3.0)
    assert not row.average_differs


def test_cpus_come_from_a_prefix_or_a_column() -> None:
    prefixed = read_timer_table(HEADER + "[4] read  100  50  2.0  1%\n")
    column = read_timer_table("CPUs,Action,Total,Count\n4,read,100,50\n")
    cell = read_timer_table("| Action | Total | Count |\n|--|--|--|\n| [4] read | 100 | 50 |\n")
    assert [rows[0].cpus for rows in (prefixed, column, cell)] == [4, 4, 4]
    assert column[0].ms_per_count is None


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", None, "no table"),
        (HEADER, None, "no table"),
        ("name value\na 1\n", 1, "not the header"),
        (HEADER + "read  100  50\n", 2, "5 columns"),
        (HEADER + "read  100  5.5  2.0  1%\n", 2, "whole number"),
        (HEADER + "read  -100  50  2.0  1%\n", 2, "not a number"),
        (HEADER + "read  nan  50  2.0  1%\n", 2, "not a number"),
        (HEADER + "read  100  50  2.0  1%\nread  100  50  2.0  1%\n", 3, "stands twice"),
        ("x" * 2_000_001, None, "characters"),
    ],
)
def test_what_cannot_be_read_is_named_by_its_line(text: str, line: int | None, words: str) -> None:
    with pytest.raises(ParseError) as refusal:
        read_timer_table(text)
    assert refusal.value.line == line
    assert words in refusal.value.message


@pytest.mark.parametrize("seed", range(5))
def test_mutated_tables_give_rows_or_a_clear_error(seed: int) -> None:
    texts = [(CASES / f"{name}.txt").read_text() for name in NAMES]
    random = Random(seed)
    for _ in range(200):
        try:
            rows = read_timer_table(mutate(random, random.choice(texts), texts))
        except ParseError:
            continue
        assert all(row.count >= 0 and row.total_ms >= 0 for row in rows)
