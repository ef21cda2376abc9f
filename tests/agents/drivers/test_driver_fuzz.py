"""Whatever happened to a report on its way, reading it gives figures or a ParseError.

`python -m bench.fuzz_parsers` does the same with many more examples.
"""

from __future__ import annotations

import json
import math
import re
from random import Random

import pytest

from agents.base.errors import ParseError
from agents.drivers.reading import REPORTING, read_report
from tests.agents.mutations import mutate
from tests.agents.recorded import Case, cases
from tests.properties import HealthCheck, given, settings, st

REPORTS = [case for kind in REPORTING if kind != "jmeter" for case in cases(kind)]
WHOLE = [case for case in REPORTS if case.expected.get("complete", True)]
# Hyperfoil prints errors last, and only when there are any; the last column of the CSV has no fixed number of digits.
OPEN_END = {"hyperfoil-wrk-text", "wrk-lua-csv"}
# A script may print anything behind wrk's report; a CSV that is cut there is left out, and noted.
SCRIPTED = {"wrk/lua-csv-behind"}
# Up to here it is what `ab -d` prints, which asks for no percentiles: nothing tells the one from the other.
WITHOUT_PERCENTILES = re.compile(r"\nTotal: [ 0-9.]+\n((WARNING|ERROR): .*\n|        .*\n)*\s*\Z")


def figures(case: Case, text: str) -> tuple[object, ...]:
    report = read_report(case.format, text)
    return report.complete, report.requests, report.throughput_rps, report.errors, report.latency


@pytest.mark.parametrize("kind", [kind for kind in REPORTING if kind != "jmeter"])
@settings(max_examples=500, deadline=None, suppress_health_check=list(HealthCheck))
@given(random=st.randoms(use_true_random=False))
def test_a_mutated_report_gives_figures_or_a_parse_error(kind: str, random: Random) -> None:
    texts = [case.text for case in cases(kind)]
    text = mutate(random, random.choice(texts), texts)
    try:
        found = read_report(kind, text).to_json()
    except ParseError:
        return
    json.dumps(found, allow_nan=False)
    assert all(value >= 0 for value in found.values() if isinstance(value, float) and math.isfinite(value))


@pytest.mark.parametrize(
    "case", [c for c in WHOLE if c.format not in OPEN_END and c.name not in SCRIPTED], ids=lambda c: c.name
)
def test_a_report_cut_anywhere_is_refused_or_has_all_its_figures(case: Case) -> None:
    whole = figures(case, case.text)
    step = max(1, len(case.text) // 150)
    for cut in [*range(0, len(case.text), step), *range(max(0, len(case.text) - 80), len(case.text))]:
        try:
            found = figures(case, case.text[:cut])
        except ParseError:
            continue
        if case.format == "ab-text" and WITHOUT_PERCENTILES.search(case.text[:cut]):
            continue
        assert found == whole, case.text[max(0, cut - 40) : cut]


@pytest.mark.parametrize("case", WHOLE, ids=lambda c: c.name)
def test_two_reports_in_one_text_are_refused(case: Case) -> None:
    for between in ("", "\n"):
        with pytest.raises(ParseError):
            read_report(case.format, case.text + between + case.text)


@pytest.mark.parametrize("case", WHOLE, ids=lambda c: c.name)
def test_line_ends_of_windows_change_no_figure(case: Case) -> None:
    assert figures(case, case.text.replace("\n", "\r\n")) == figures(case, case.text)
