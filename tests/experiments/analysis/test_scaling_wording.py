"""The sentences about a scaling measurement."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from experiments.analysis.best_load import LoadTried, best_load_sentences
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
    return law_sentences(fit_law(A7[example]["N"], A7[example]["X"], noise="constant"), len(A7[example]["N"]))


def test_a_real_peak_is_said_with_its_place_and_height() -> None:
    found = sentences("specsdm91")
    assert found[0].startswith("One CPU does 90 [50.53, 129.5] requests/s; 2.77 [0.24, 5.31] % of the work")
    assert "The peak lies at 97 CPUs with 1,884 requests/s: beyond it, more CPUs make it slower." in found
    assert "At 36 CPUs each does only 48 % of what one alone does: 1,542 requests/s." in found


def test_without_a_peak_there_is_a_limit() -> None:
    found = sentences("raytracer")
    assert any("No peak is visible" in sentence for sentence in found)
    assert "No number of CPUs can do more than 378 [348, 411] requests/s by this law." in found


def test_too_few_points_are_said_to_be_too_few() -> None:
    assert law_sentences(None, 3) == ["3 CPU counts are too few for a scaling law: measure at least 4."]
    law = fit_law([1.0, 2, 4, 8], [100.0, 190, 340, 520])
    assert law_sentences(law, 4)[-1].startswith("4 CPU counts are few for a law")


@pytest.mark.parametrize(
    ("base", "here", "words"),
    [
        (Conditions(0.7), Conditions(0.99), "On one CPU the SUT was only 70 % busy"),
        (Conditions(0.99, 2000, 0.2), Conditions(0.99), "On one CPU something else than the server used 79 % of it"),
        (Conditions(0.99, 2000, 0.6), Conditions(0.99, 2600, 0.6), "The clock was higher"),
        (Conditions(0.99, 2000), Conditions(0.99, 2600), "The clock was higher: 2,600 MHz against 2,000 MHz."),
        (Conditions(), Conditions(), "Look for caches that fit only now"),
    ],
)
def test_a_super_linear_point_is_explained_by_what_was_seen(base: Conditions, here: Conditions, words: str) -> None:
    point = Efficiency(8, 1.19, (1.17, 1.21))
    sentence = super_linear_sentence(point, 1, base, here)
    assert sentence.startswith("8 CPUs do 1.19 [1.17, 1.21] times the share of one CPU, which no machine does by")
    assert words in sentence


UP = {8: (100.0, 101, 102), 16: (150.0, 151, 152), 32: (190.0, 191, 192)}
DOWN = {8: UP[32], 16: UP[16], 32: UP[8]}
INSIDE = {8: UP[8], 16: UP[32], 32: UP[16]}
FLAT = {8: UP[8], 16: (189.0, 192, 190), 32: UP[32]}
MOST = "On 1 CPU the most users that were tried, 32, were the best"
BEST = "Users with the best throughput:"


@pytest.mark.parametrize(
    ("tried", "wanted"),
    [
        ({1: INSIDE}, [f"{BEST} 16 on 1 CPU."]),
        (
            {1: INSIDE, 2: UP, 4: UP},
            [
                f"{BEST} 16 on 1 CPU, 32 on 2 CPUs and 32 on 4 CPUs.",
                "On 2 and 4 CPUs the most users that were tried, 32, were the best: try more.",
            ],
        ),
        (
            {2: DOWN},
            [f"{BEST} 8 on 2 CPUs.", "On 2 CPUs the fewest users that were tried, 8, were the best: try fewer."],
        ),
        (
            {1: FLAT},
            [
                f"{BEST} 32 on 1 CPU.",
                f"{MOST}, but not clearly better than 16: more will hardly help.",
            ],
        ),
        (
            {1: {8: (100.0,), 16: (101.0,)}},
            [f"{BEST} 16 on 1 CPU.", "On 1 CPU the most users that were tried, 16, were the best: try more."],
        ),
        ({1: {1: (100.0,), 2: (90.0,)}}, [f"{BEST} 1 on 1 CPU."]),
        ({1: {8: (100.0,)}, 2: {16: (100.0,)}}, []),
        ({}, []),
    ],
    ids=["inside", "most", "fewest", "flat", "few repetitions", "one user", "one load", "nothing"],
)
def test_the_best_load_of_each_cpu_count_is_named_and_whether_more_should_be_tried(
    tried: dict[int, dict[int, tuple[float, ...]]], wanted: list[str]
) -> None:
    loads = [LoadTried(cpus, count, values) for cpus, same in tried.items() for count, values in same.items()]
    assert best_load_sentences(loads, "users") == wanted


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
