"""The sentences about a scaling measurement."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from experiments.analysis.scaling import fit_law
from experiments.analysis.scaling_points import Efficiency, advise_instances, quantised
from experiments.analysis.scaling_wording import (
    Conditions,
    advice_sentence,
    law_sentences,
    quantised_sentence,
    super_linear_sentence,
)

A7: dict[str, Any] = json.loads(Path(__file__).with_name("worked_examples.json").read_text())["A7_usl"]


def sentences(example: str) -> list[str]:
    return law_sentences(fit_law(A7[example]["N"], A7[example]["X"]), len(A7[example]["N"]))


def test_a_real_peak_is_said_with_its_place_and_height() -> None:
    found = sentences("specsdm91")
    assert found[0].startswith("One CPU does 90 [50.53, 129.5] requests/s; 2.77 [0.24, 5.31] % of the work")
    assert "The peak lies at 97 CPUs with 1,884 requests/s: beyond it, more CPUs make it slower." in found
    assert "At 36 CPUs each does only 48 % of what one alone does: 1,542 requests/s." in found


def test_without_a_peak_there_is_a_limit() -> None:
    found = sentences("raytracer")
    assert any("No peak is visible" in sentence for sentence in found)
    assert "No number of CPUs can do more than 378 requests/s by this law." in found


def test_too_few_points_are_said_to_be_too_few() -> None:
    assert law_sentences(None, 3) == ["3 CPU counts are too few for a scaling law: measure at least 4."]
    law = fit_law([1.0, 2, 4, 8], [100.0, 190, 340, 520])
    assert law_sentences(law, 4)[-1].startswith("4 CPU counts are few for a law")


@pytest.mark.parametrize(
    ("base", "here", "words"),
    [
        (Conditions(0.7), Conditions(0.99), "On one CPU the SUT was only 70 % busy"),
        (Conditions(0.99, 2000), Conditions(0.99, 2600), "The clock was higher: 2,600 MHz against 2,000 MHz."),
        (Conditions(), Conditions(), "Look for caches that fit only now"),
    ],
)
def test_a_super_linear_point_is_explained_by_what_was_seen(base: Conditions, here: Conditions, words: str) -> None:
    point = Efficiency(8, 1.19, (1.17, 1.21))
    sentence = super_linear_sentence(point, 1, base, here)
    assert sentence.startswith("8 CPUs do 1.19 [1.17, 1.21] times the share of one CPU, which no machine does by")
    assert words in sentence


def test_whole_numbers_and_advice_have_a_sentence_each() -> None:
    assert "1.375 to 1.5 per CPU explains every point" in quantised_sentence(quantised([1, 2, 4, 8], [1, 2, 5, 11]))
    assert "the step is real" in quantised_sentence(quantised([1, 2, 4], [10, 20, 95]))
    advice = advise_instances(20.85604559, 0.02444405, 0.00162681, cpus=16)
    assert advice_sentence(advice, 16, 0.9) == (
        "For 16 CPUs: 4 instances on 4 CPUs each, together about 305 requests/s, where one instance on all would do "
        "190. This is a prediction: verify it by a run."
    )
    assert advice_sentence(advise_instances(20.0, 0.0, 0.0, cpus=4), 4, 0.9) == (
        "One instance uses all 4 CPUs to at least 90 %: more instances gain nothing."
    )
