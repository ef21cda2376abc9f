"""Why, as an answer: what is shown by an interval comes first, and nothing is claimed without one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest

from experiments.analysis.explanations import NOTHING, Kind, Measured, Why, explain
from experiments.analysis.function_costs import compare_functions
from tests.experiments.analysis.test_function_costs import arm

QUIET = (0.010, 0.011, 0.009, 0.010, 0.012, 0.010)
LOUD = (0.051, 0.049, 0.052, 0.050, 0.048, 0.051)
CPU = [20.0, 20.4, 19.8, 20.2, 20.1, 20.0]
OLD = arm([0.10, 0.11, 0.10, 0.10, 0.11, 0.10], CPU, render=0.3)
NEW = arm([0.20, 0.21, 0.20, 0.19, 0.20, 0.21], [22.2, 22.5, 22.0, 22.4, 22.3, 22.1], render=0.27)


def figure(kind: Kind, a: Sequence[float], b: Sequence[float], *, more_is_worse: bool = True) -> Measured:
    return Measured(kind, f"sut {kind}", f"What {kind} showed", "ratio", more_is_worse, tuple(a), tuple(b))


IOWAIT = figure("waiting", QUIET, LOUD)
CLOCK = replace(figure("machine", (2400.0,) * 6, (2100.0, 2101.0, 2099.0, 2100.0, 2102.0, 2100.0)), unit="mhz")
SLOW_CLOCK = replace(CLOCK, more_is_worse=False)


def why(*figures: Measured, worse: bool = True, differences: dict[Kind, list[str]] | None = None) -> Why:
    return explain(worse=worse, functions=None, figures=figures, differences=differences or {}, missing=(), paired=True)


@pytest.mark.parametrize(
    "figures, worse, differences, headline, evidence",
    [
        ((), True, {}, "Nothing was measured", []),
        ((figure("waiting", QUIET, QUIET[::-1]),), True, {}, NOTHING, []),
        ((figure("waiting", QUIET[:4], LOUD[:4]),), True, {}, NOTHING, []),  # an interval, and too few for a verdict
        ((IOWAIT,), True, {}, "Something was waited for more", ["interval"]),
        ((IOWAIT,), False, {}, NOTHING, ["against"]),  # it is better, and yet waited more
        ((SLOW_CLOCK,), True, {}, "The machine ran", ["interval"]),
        ((CLOCK,), True, {}, NOTHING, ["against"]),
        ((), True, {"configuration": ["A differs."]}, f"{NOTHING} Something differs", ["difference"]),
        (
            (SLOW_CLOCK, IOWAIT),
            True,
            {"load": ["L."]},
            "Something was waited for more",
            ["interval", "interval", "difference"],
        ),
    ],
)
def test_only_an_interval_without_zero_in_the_right_direction_explains(
    figures: tuple[Measured, ...],
    worse: bool,
    differences: dict[Kind, list[str]],
    headline: str,
    evidence: list[str],
) -> None:
    found = why(*figures, worse=worse, differences=differences)
    assert found.headline.startswith(headline)
    assert [one.evidence for one in found.found] == evidence
    assert "because" not in found.headline + "".join(one.sentence for one in found.found).lower()
    for one in found.found:
        assert (one.evidence == "difference") == (one.ci95 is None)
        assert one.ci95 is None or not one.ci95[0] <= 0 <= one.ci95[1]


def test_functions_stand_first_and_each_says_its_cost_with_the_interval() -> None:
    changes = compare_functions(OLD, NEW)
    found = explain(
        worse=True, functions=changes, figures=[IOWAIT], differences={"configuration": ["A differs."]}, paired=True
    )
    assert [(one.kind, one.evidence) for one in found.found] == [
        ("functions", "interval"),
        ("waiting", "interval"),
        ("configuration", "difference"),
    ]
    parse = found.found[0]
    assert parse.name == "parse"
    said = r"parse costs 44\.\d µs of CPU per request against 20\.\d µs: \+2\d\.\d µs \[.*\]\."
    assert re.fullmatch(said, parse.sentence)
    assert found.measured == len(changes.own) + 1
    better = explain(worse=False, functions=changes, figures=[], differences={}, paired=True)
    assert [one.evidence for one in better.found] == ["against"]
    assert better.headline == NOTHING


def test_many_figures_are_corrected_for_their_number() -> None:
    weak = figure("waiting", (0.010, 0.011, 0.009, 0.010, 0.012), (0.012, 0.012, 0.0095, 0.0115, 0.0125))
    assert [one.evidence for one in why(weak).found] == ["interval"]
    others = [figure("waiting", QUIET[:5], QUIET[1:6]) for _ in range(9)]
    assert why(weak, *others).found == ()
