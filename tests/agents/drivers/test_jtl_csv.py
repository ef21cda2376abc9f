"""The way of polars through JMeter's CSV files, against the slow one that goes row by row."""

from __future__ import annotations

from random import Random

import pytest

from agents.base.errors import ParseError
from agents.drivers.jmeter.jtl import csv_file
from agents.drivers.jmeter.jtl.files import read_jtl_text
from tests.agents.drivers.test_jmeter import CASES, HEADER, row
from tests.agents.mutations import mutate
from tests.properties import HealthCheck, given, settings, st

ROWS = [
    line + "\n"
    for case in CASES.values()
    if case.text.startswith(HEADER.rstrip())
    for line in case.text.splitlines()[1:120]
]


def read(text: str) -> object:
    try:
        return read_jtl_text(text)
    except ParseError as error:
        return str(error)


def slowly(text: str) -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_file, "_part", lambda *_args, **_quoted: None)
        return read(text)


@pytest.mark.parametrize("name", sorted(name for name, case in CASES.items() if case.format == csv_file.FORMAT))
def test_polars_gives_the_report_that_going_row_by_row_gives(name: str) -> None:
    assert read(CASES[name].text) == slowly(CASES[name].text)


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.randoms(use_true_random=False))
def test_damaged_files_give_what_going_row_by_row_gives(pieces: None, random: Random) -> None:
    rows = "".join(random.choices(ROWS, k=random.randint(1, 30)))
    text = HEADER + mutate(random, rows, ROWS) + 40 * row(0, 7)
    assert read(text) == slowly(text)


@pytest.fixture
def pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small ones, so that one file has damaged and whole ones."""
    monkeypatch.setattr(csv_file, "PIECE_BYTES", 2000)
