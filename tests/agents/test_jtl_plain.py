"""The compiled way through plain pieces of JMeter's result files, against the way of polars."""

from __future__ import annotations

import io
import sys
from random import Random

import pytest

from agents import drivers
from agents.drivers import jtl_csv
from agents.drivers.jtl_columns import KINDS, THREAD
from agents.drivers.jtl_form import JtlForm, form_of
from agents.drivers.jtl_part import Part
from agents.drivers.jtl_plain import CountPlain, has_plain_pieces, plain_counter
from agents.errors import ParseError
from tests.agents.mutations import mutate
from tests.agents.test_jmeter import CASES, HEADER, row
from tests.properties import HealthCheck, given, settings, st

FORM = form_of(HEADER.encode())
NAMES = [name for name in KINDS if name in FORM.columns and name != THREAD]
NEVER = 1 << 62
ROWS = [
    line + "\n"
    for case in CASES.values()
    if case.text.startswith(HEADER.rstrip())
    for line in case.text.splitlines()[1:120]
]


@pytest.fixture(scope="module")
def count_plain() -> CountPlain:
    """The compiled way; to make it takes seconds."""
    made = plain_counter(FORM, NAMES)
    assert made is not None
    return made


def by_polars(data: bytes) -> Part | None:
    return jtl_csv._part(data, FORM, NAMES, quoted=b'"' in data)


def tables(part: Part) -> list[list[tuple[object, ...]]]:
    frames = (part.groups, part.course, part.failures)
    return [sorted(frame.select(sorted(frame.columns)).rows(), key=repr) for frame in frames]


@settings(deadline=None, max_examples=200)
@given(random=st.randoms(use_true_random=False))
def test_what_it_counts_is_what_polars_counts_also_in_damaged_rows(count_plain: CountPlain, random: Random) -> None:
    data = mutate(random, "".join(random.choices(ROWS, k=random.randint(1, 30))), ROWS).encode("utf-8", "replace")
    part = count_plain(data)
    if part is None:
        return
    same = by_polars(data)
    assert same is not None
    assert tables(part) == tables(same)
    assert (part.rows, part.first_end_ms, part.last_end_ms, part.back_ms) == (
        same.rows,
        same.first_end_ms,
        same.last_end_ms,
        same.back_ms,
    )


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("a quote", row(1, 1, label='"a"')),
        ("a cell too few", row(1, 1).replace(",0,0\n", ",0\n")),
        ("a cell too many", row(1, 1).replace(",0,0\n", ",0,0,0\n")),
        ("no number", row(1, "1.5")),
        ("nothing for a number", row(1, "")),
        ("a number below zero", row(1, "-1")),
        ("a number too long", row(1, "1" * 19)),
        ("a time too long to be one", row(1, 10 * 24 * 3600 * 1000 + 1)),
        ("no flag", row(1, 1, success="TRUE")),
        ("a header", HEADER),
        ("a blank line", "\n"),
        ("a torn end", row(1, 1)[:-3]),
        ("a transaction", row(1, 1, message="Number of samples in transaction : 2")),
        ("too many labels", "".join(row(i, 1, label=f"page {i}") for i in range(5000))),
    ],
)
def test_it_leaves_what_is_not_plain_to_polars(count_plain: CountPlain, name: str, line: str) -> None:
    good = "".join(row(i, 5) for i in range(3))
    assert count_plain(good.encode()) is not None
    assert count_plain((good + line).encode()) is None
    assert count_plain((line + good).encode()) is None or name == "a torn end"


def test_text_that_is_no_utf_8_is_left_to_polars(count_plain: CountPlain) -> None:
    assert count_plain(row(0, 1, label="caf\xe9").encode("latin-1")) is None


def test_files_whose_time_stamps_are_text_or_whose_last_column_is_needed_have_no_plain_pieces() -> None:
    assert has_plain_pieces(FORM, NAMES)
    assert not has_plain_pieces(form_of(HEADER.encode() + b"2026/11/21 10:00:00," + b"," * 15 + b"\n"), NAMES)
    assert not has_plain_pieces(form_of(b"timeStamp,elapsed,label,success\n"), ["timeStamp", "success"])


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch, count_plain: CountPlain) -> list[bool]:
    """For each piece that the compiled way was asked for, whether it counted it. Pieces are small."""
    found: list[bool] = []

    def counter(form: JtlForm, names: list[str]) -> CountPlain | None:
        counter_of_form = plain_counter(form, names)

        def noting(data: bytes) -> Part | None:
            part = counter_of_form(data) if counter_of_form else None
            found.append(part is not None)
            return part

        return noting

    monkeypatch.setattr(jtl_csv, "PIECE_BYTES", 2000)
    monkeypatch.setattr(jtl_csv, "plain_counter", counter)
    return found


def read(text: str, compiled_from_bytes: int) -> object:
    try:
        return jtl_csv.read_csv(io.BytesIO(text.encode("utf-8", "replace")), compiled_from_bytes=compiled_from_bytes)
    except ParseError as error:
        return str(error)


@pytest.mark.parametrize("name", sorted(name for name, case in CASES.items() if case.format == jtl_csv.FORMAT))
def test_a_large_file_gives_the_report_that_a_small_one_gives(name: str, counted: list[bool]) -> None:
    text = CASES[name].text
    small = read(text, NEVER)
    assert not counted
    assert read(text, 0) == small
    plain = text.startswith(HEADER.rstrip()) and '"' not in text and "\r" not in text
    assert any(counted) or not plain


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.randoms(use_true_random=False))
def test_damaged_files_give_what_they_give_without_machine_code(counted: list[bool], random: Random) -> None:
    counted.clear()
    rows = "".join(random.choices(ROWS, k=20))
    text = HEADER + mutate(random, rows, ROWS) + 40 * row(0, 7)
    assert read(text, 0) == read(text, NEVER)
    assert any(counted)


def test_without_machine_code_polars_reads_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    text = HEADER + 40 * row(0, 7)
    whole = read(text, 0)
    monkeypatch.setitem(sys.modules, "agents.drivers.jtl_compiled", None)
    monkeypatch.delattr(drivers, "jtl_compiled")
    assert plain_counter(FORM, NAMES) is None
    assert read(text, 0) == whole
