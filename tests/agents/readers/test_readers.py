"""Readers of result files: each case to its figures, each form told from all others, and no error but ParseError."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from random import Random

import pytest

from agents.base.errors import ParseError
from agents.drivers.reading import REPORTING
from agents.readers import RESULT_READERS
from agents.readers.base.figure_kinds import figure_kind
from agents.readers.base.result_reader import MAX_CHARS
from agents.readers.reading import RESULT_FORMS, decoded, guesses, read_results
from tests.agents.mutations import mutate
from tests.agents.recorded import CASES, Case, cases
from tests.properties import HealthCheck, given, settings, st

RESULTS = [case for kind in RESULT_READERS for case in cases(kind)]
REFUSED = {"bmf/not-bmf-bare-number": r"GET /people > latency"}
NAMELESS = {"bmf/not-bmf-bare-number", "jmh/no-match"}
"""No form at all, and a file of 0 bytes: nobody can tell by their content what they are."""
READ = [case for case in RESULTS if case.name not in REFUSED]


def kind_of(case: Case) -> str:
    return case.name.partition("/")[0]


def printed(case: Case, text: str | None = None) -> dict[str, object]:
    """What is printed for the file of a case."""
    readout = read_results(kind_of(case), case.text if text is None else text, file_of(case))
    found: dict[str, object] = json.loads(json.dumps(readout.to_json(), allow_nan=False))
    return found


def file_of(case: Case) -> str:
    return f"{case.name.rpartition('/')[2]}.json"


def differences(expected: object, found: object, path: str, ranges: Mapping[str, list[float]]) -> Iterator[str]:
    """What is not as expected; keys that `expected` leaves out are not looked at."""
    name = path.rpartition(".")[2]
    if name in ranges:
        low, high = ranges[name]
        if not isinstance(found, int | float) or not low <= found <= high:
            yield f"{path}: {found} is not between {low} and {high}"
    elif isinstance(expected, dict):
        there = found if isinstance(found, dict) else {}
        for key, value in expected.items():
            if key not in there:
                yield f"{path}.{key} is missing"
            else:
                yield from differences(value, there[key], f"{path}.{key}", ranges)
    elif isinstance(expected, list):
        if not isinstance(found, list) or len(found) != len(expected):
            yield f"{path}: {found}, not {expected}"
        else:
            for place, (one, other) in enumerate(zip(expected, found, strict=True)):
                yield from differences(one, other, f"{path}[{place}]", ranges)
    elif isinstance(expected, int | float) and not isinstance(expected, bool):
        if not isinstance(found, int | float) or not math.isclose(found, expected, rel_tol=1e-6, abs_tol=1e-15):
            yield f"{path}: {found}, not {expected}"
    elif found != expected:
        yield f"{path}: {found}, not {expected}"


@pytest.mark.parametrize("case", READ, ids=lambda case: case.name)
def test_a_file_is_read_to_the_figures_of_its_case(case: Case) -> None:
    found = printed(case)
    expected = {name: value for name, value in case.expected.items() if not name.startswith("why")}
    ranges = case.about.get("tolerance", {}).get("percentile_range", {})  # type: ignore[attr-defined]
    assert list(differences(expected, found, "", ranges)) == []
    assert found["format"] == case.format
    assert found.get("usable", True) == case.about.get("usable", True)
    assert found["tool_version"] in (None, case.about["tool_version"])


@pytest.mark.parametrize("case", RESULTS, ids=lambda case: case.name)
def test_a_file_is_known_by_its_content_alone(case: Case) -> None:
    found = [(guess.kind, guess.form) for guess in guesses(case.text)]
    assert found == ([] if case.name in NAMELESS else [(kind_of(case), case.format)])


@pytest.mark.parametrize("kind", sorted(REPORTING))
def test_a_load_tools_report_is_taken_for_no_file_of_results(kind: str) -> None:
    assert {case.name: guesses(case.text) for case in cases(kind)} == {case.name: [] for case in cases(kind)}


def test_every_form_has_a_case() -> None:
    assert {case.format for case in RESULTS} == set(RESULT_FORMS)


@pytest.mark.parametrize("kind", sorted(RESULT_READERS))
def test_every_figure_has_a_unit_and_every_result_one_that_stands_for_it(kind: str) -> None:
    for case in cases(kind):
        if case.name in REFUSED:
            continue
        for result in read_results(kind, case.text, file_of(case)).results:
            numbers = {
                name: value
                for name, value in result.figures.items()
                if isinstance(value, int | float) and not isinstance(value, bool)
            }
            assert [name for name in numbers if figure_kind(name) is None] == []
            if result.why or result.measures or not numbers:
                continue
            name = next((name for name in RESULT_READERS[kind].headline if name in numbers), None)
            assert name is not None, (case.name, result.benchmark)
            meaning = figure_kind(name)
            assert meaning is not None
            assert meaning.direction is not None, name


@pytest.mark.parametrize("case", READ, ids=lambda case: case.name)
def test_line_ends_and_marks_of_windows_change_nothing(case: Case) -> None:
    text = "\ufeff" + case.text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\n", "\r\n")
    assert printed(case, text) == printed(case)
    assert decoded(b"\xff\xfe" + case.text.encode("utf-16-le")) == case.text
    assert guesses(text) == guesses(case.text)


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_is_not_of_the_form_is_refused_with_its_path(name: str) -> None:
    case = next(case for case in RESULTS if case.name == name)
    with pytest.raises(ParseError, match=REFUSED[name]):
        printed(case)


HOSTILE = {
    "nothing": "",
    "blank": "\n \n\t\n",
    "a text": "hello\n",
    "cut off": '{"fio version": "fio-3.33", "jobs": [{"jobname": "a", "read": {',
    "deep lists": '{"a": ' + "[" * 100_000,
    "deep objects": '[{"a":' * 50_000,
    "a huge number": '[{"benchmark": "a", "mode": "thrpt", "jmhVersion": ' + "9" * 5000 + "}]",
    "constants": '{"results": [{"command": "a", "mean": NaN, "times": [Infinity]}]}',
    "no text": "\x00\x01\ud7ff" * 100,
    "one long line": "x" * 1_000_000,
    "many brackets": "[\n" * 100_000,
    "many braces": "{\n" * 100_000,
    "many spaces": " " * 500_000 + "\n" + "\t" * 500_000,
    "many titles": "====== x ======\n" * 20_000,
    "many quotes": '"' * 200_000,
    "a wrong list": "[1, 2, 3]",
    "an empty list": "[]",
    "an empty object": "{}",
    "a list of null": "[null]",
    "null everywhere": '{"jobs": [null], "results": [null], "benchmarks": [null], "Benchmarks": [null], "data": null}',
    "a wrong table": "a,b\n1\n",
}


@pytest.mark.parametrize("form", sorted(RESULT_FORMS))
@pytest.mark.parametrize("what", sorted(HOSTILE))
def test_what_makes_no_sense_is_refused_or_has_no_result(form: str, what: str) -> None:
    try:
        readout = read_results(form, HOSTILE[what])
    except ParseError:
        return
    assert not [result for result in readout.results if not result.why]
    json.dumps(readout.to_json(), allow_nan=False)


@pytest.mark.parametrize("form", sorted(RESULT_FORMS))
def test_more_than_is_read_at_most_is_refused_at_once(form: str) -> None:
    text = "9" * (MAX_CHARS + 1)
    with pytest.raises(ParseError, match=r"characters|there is no|well-formed"):
        read_results(form, text)


@pytest.mark.parametrize("kind", sorted(RESULT_READERS))
@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(random=st.randoms(use_true_random=False))
def test_a_mutated_file_gives_figures_or_a_parse_error(kind: str, random: Random) -> None:
    texts = [case.text for case in cases(kind)]
    text = mutate(random, random.choice(texts), texts)
    guesses(text)
    try:
        readout = read_results(kind, text)
    except ParseError:
        return
    json.dumps(readout.to_json(), allow_nan=False)


def test_a_tool_that_nobody_knows_is_named_with_those_that_are() -> None:
    with pytest.raises(ParseError, match="no reader for 'nope'") as raised:
        read_results("nope", "x")
    assert "fio" in raised.value.hint


def test_every_kind_has_its_own_folder_of_cases() -> None:
    assert [kind for kind in RESULT_READERS if not (CASES / kind).is_dir()] == []
