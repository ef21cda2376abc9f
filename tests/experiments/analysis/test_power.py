"""Power: the published value, the table of the documentation, and the way back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from experiments.analysis.power import detectable_change, needed_to_find, power_of

A5: dict[str, Any] = json.loads(Path(__file__).with_name("worked_examples.json").read_text())["A5_power"]
CHANGES = (0.01, 0.02, 0.03, 0.05, 0.10)
TABLE = {
    0.01: (17, 6, 4, 3, 2),
    0.02: (65, 18, 9, 4, 3),
    0.03: (144, 37, 18, 8, 3),
    0.05: (397, 101, 46, 18, 6),
}
DOCUMENT = (Path(__file__).parents[3] / "docs" / "verdicts.md").read_text()


def test_the_published_power_comes_out_to_the_printed_digit() -> None:
    assert power_of(A5["n"], A5["delta_sd"], alpha=A5["alpha"]) == pytest.approx(A5["power"], abs=5e-8)


@pytest.mark.parametrize("cov_ratio", TABLE)
def test_the_table_of_needed_repetitions_is_reproduced_and_is_the_documented_one(cov_ratio: float) -> None:
    found = tuple(needed_to_find(cov_ratio, change) for change in CHANGES)
    assert found == TABLE[cov_ratio]
    assert f"| {cov_ratio * 100:g} % | {' | '.join(map(str, found))} |" in DOCUMENT


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize(("n", "cov_ratio"), [(5, 0.02), (8, 0.05), (20, 0.01)])
def test_the_detectable_change_is_found_with_just_that_many(n: int, cov_ratio: float, paired: bool) -> None:
    change = detectable_change(n, cov_ratio, paired=paired)
    assert needed_to_find(cov_ratio, change * 1.001, paired=paired) == n
    assert (needed_to_find(cov_ratio, change * 0.99, paired=paired) or 0) > n


def test_pairs_have_fewer_degrees_of_freedom_and_so_need_a_little_more() -> None:
    assert (needed_to_find(0.02, 0.03, paired=True) or 0) >= (needed_to_find(0.02, 0.03) or 0)


def test_a_hopeless_question_has_no_number() -> None:
    assert needed_to_find(0.5, 0.001) is None


@pytest.mark.parametrize("cov_ratio", [0.0, -0.1, float("nan")])
def test_noise_that_is_none_is_refused(cov_ratio: float) -> None:
    with pytest.raises(ValueError, match="noise"):
        needed_to_find(cov_ratio, 0.03)
