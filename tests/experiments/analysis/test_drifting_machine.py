"""The drifting machine of docs/verdicts.md: what is printed there is what comes out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from experiments.analysis import wording
from experiments.analysis.verdict import Arms, judge

DOCUMENT = (Path(__file__).parents[3] / "docs" / "verdicts.md").read_text()
SECTION = DOCUMENT.partition("## A drifting machine")[2].partition("\n## ")[0]
MEASURED = [50070, 49810, 49370, 48700, 48790, 48360, 47830, 47710, 47340, 46990, 46610, 46380]
ORDERS = {"one after the other": "AAAAAABBBBBB", "blocks": "AB AB BA AB AB BA".replace(" ", "")}


def arms(order: str) -> tuple[list[float], list[float]]:
    """What the machine would have measured for each variant in this order."""
    a, b = ([float(value) for value, ran in zip(MEASURED, order, strict=True) if ran == side] for side in "AB")
    return a, b


def test_the_document_prints_these_figures_and_orders() -> None:
    line = re.search(r"^ {4}([\d, ]+) requests/s$", SECTION, re.MULTILINE)
    assert line is not None
    assert [int(text.replace(",", "")) for text in line[1].split()] == MEASURED
    assert "AAAAAABBBBBB" in SECTION
    assert "AB AB BA AB AB BA" in SECTION


@pytest.mark.parametrize(
    ("order", "design", "outcome", "gate"),
    [
        ("one after the other", "independent", "worse_size_uncertain", "fail"),
        ("blocks", "blocked", "no_practical_difference", "pass"),
        ("blocks", "independent", "inconclusive", "neutral"),
    ],
)
def test_what_is_said_of_two_identical_variants_is_what_the_document_quotes(
    order: str, design: Arms, outcome: str, gate: str
) -> None:
    verdict = judge(*arms(ORDERS[order]), higher_is_better=True, design=design)
    assert (verdict.outcome, verdict.gate) == (outcome, gate)
    assert f"> {wording.headline(verdict)}\n" in SECTION
