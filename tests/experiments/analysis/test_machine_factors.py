"""Kernel, OS and memory as factors: what divides the runs, what like with like comes to, and what is said of it."""

from __future__ import annotations

import math
from itertools import count

import numpy as np
import pytest

from experiments.analysis.contrast import contrast
from experiments.analysis.machine_factors import Machines, Measured, machines_of
from experiments.analysis.machine_wording import change_text
from experiments.analysis.verdict import Arms, judge

FACTORS = ("kernel", "memory", "OS")
OLD, NEW = {"kernel": "5.14.0", "memory": "16 GiB"}, {"kernel": "6.8.0", "memory": "16 GiB"}
WIGGLE = (0.99, 1.01, 1.0, 1.005, 0.995)


def runs(*cells: tuple[dict[str, str], str, str, float], blocks: bool = True, executed: bool = True) -> list[Measured]:
    """Five repetitions of each (machine, host, set-up, mean), block by block; the numbers follow time."""
    number = count(1)
    return [
        Measured(next(number), machine, host, setup, mean * WIGGLE[block] ** power, block if blocks else None, executed)
        for block in range(5)
        for power, (machine, host, setup, mean) in enumerate(cells, start=1)
    ]


def found(*cells: tuple[dict[str, str], str, str, float], blocks: bool = True, executed: bool = True) -> Machines:
    return machines_of(runs(*cells, blocks=blocks, executed=executed), FACTORS)


@pytest.mark.parametrize("design", ["blocked", "independent"])
def test_a_contrast_of_two_samples_is_the_interval_of_a_verdict(design: Arms) -> None:
    a, b = [1000.0, 1010, 990, 1004, 996], [1100.0, 1080, 1130, 1111, 1099]
    sides = [tuple((k if design == "blocked" else None, v) for k, v in enumerate(one)) for one in (b, a)]
    ours = contrast([sides[0]], [sides[1]])
    theirs = judge(a, b, higher_is_better=True, design=design)
    assert ours.ci95 is not None
    assert (ours.ratio - 1) * 100 == pytest.approx(theirs.estimate_pct)
    assert [(edge - 1) * 100 for edge in ours.ci95] == pytest.approx(theirs.ci95_pct)
    assert ours.paired is (design == "blocked")
    assert ours.differs


def test_the_interval_of_four_samples_holds_the_true_ratio_in_95_of_100_cases() -> None:
    random = np.random.default_rng(7)
    for paired in (True, False):
        hits = 0
        for _ in range(400):
            drift = random.normal(0, 0.1, 5) * paired
            logs = [drift + random.normal(0, spread, 5) for spread in (0.02, 0.05, 0.02, 0.05)]
            samples = [tuple((k if paired else None, math.exp(v)) for k, v in enumerate(one)) for one in logs]
            ci95 = contrast(samples[:2], samples[2:]).ci95
            assert ci95 is not None
            hits += ci95[0] <= 1 <= ci95[1]
        assert 366 <= hits <= 398  # a seeded draw; 380 are expected


def test_a_few_repetitions_have_no_interval_and_a_constant_one_of_no_width() -> None:
    assert contrast([((None, 2.0),)], [((None, 1.0),)]).ci95 is None
    still = contrast([tuple((k, 2.0) for k in range(3))], [tuple((k, 1.0) for k in range(3))])
    assert still.ci95 == pytest.approx((2.0, 2.0))


def test_machines_that_are_alike_divide_nothing() -> None:
    assert found((OLD, "a", "x", 1000), (dict(OLD), "b", "x", 900)).splits == ()
    assert machines_of([], FACTORS) == Machines((), ())


def test_one_host_under_two_kernels_says_what_the_kernel_does_to_each_set_up() -> None:
    split = found(
        (OLD, "a", "threads", 1000),
        (OLD, "a", "virtual", 800),
        (NEW, "a", "threads", 1000),
        (NEW, "a", "virtual", 1100),
    ).splits[0]
    assert split.factors == ("kernel",)
    assert [level.name for level in split.levels] == ["5.14.0", "6.8.0"]
    rows = {row.setup: row for row in split.rows}
    assert rows["threads"].cells[0].change is None
    assert rows["virtual"].cells[1].change is not None
    assert rows["virtual"].cells[1].change.ratio == pytest.approx(1.375, rel=0.01)
    (effect,) = split.effects
    assert [cell.brings and round(cell.brings.ratio, 1) for cell in effect.cells] == [0.8, 1.1]
    assert effect.cells[1].against_first is not None
    assert effect.cells[1].against_first.paired
    same_host, differs = split.sentences
    assert same_host == "a was measured at every level, so the hardware stays the same."
    assert differs.startswith("virtual against threads does not bring the same as with 5.14.0: +37.")


def test_what_differs_together_is_one_split_and_its_machines_are_named() -> None:
    big = {"kernel": "6.8.0", "memory": "128 GiB"}
    split = found((OLD, "a", "x", 1000), (big, "b", "x", 1001)).splits[0]
    assert split.factors == ("kernel", "memory")
    assert [level.hosts for level in split.levels] == [("a",), ("b",)]
    together, own = split.sentences
    assert together.startswith("Kernel and memory differ together in these runs")
    assert own.startswith("Each level is a machine of its own")
    assert not split.effects


def test_like_is_compared_with_like() -> None:
    big = {"kernel": "6.8.0", "memory": "128 GiB"}
    by_kernel, by_memory = found((OLD, "a", "x", 1000), (NEW, "b", "x", 1100), (big, "c", "x", 2000)).splits
    assert (by_kernel.factors, by_memory.factors) == (("kernel",), ("memory",))
    assert [row.alike for row in by_kernel.rows] == ["16 GiB"]
    assert [row.alike for row in by_memory.rows] == ["6.8.0"]
    assert [level.name for level in by_memory.levels] == ["16 GiB", "128 GiB"]


def test_runs_that_nothing_else_has_in_common_are_not_compared() -> None:
    split = found((OLD, "a", "x", 1000), (NEW, "b", "y", 1100)).splits[0]
    assert split.sentences == ("Kernel: no two runs are alike in everything else, so nothing can be compared.",)


def test_levels_one_after_the_other_are_told_from_levels_in_turn() -> None:
    turns = runs((OLD, "a", "x", 1000), (NEW, "a", "x", 1100), blocks=False)
    after = sorted(turns, key=lambda one: one.machine["kernel"])
    after = [Measured(n, one.machine, one.host, one.setup, one.value) for n, one in enumerate(after)]
    said = [machines_of(given, FACTORS).splits[0].sentences[-1] for given in (turns, after)]
    assert ["one after the other" in sentence for sentence in said] == [False, True]


def test_imports_and_factors_that_some_runs_do_not_tell_are_named() -> None:
    machines = found((OLD | {"OS": "RHEL 9"}, "", "x", 1000), (NEW, "", "x", 1100), blocks=False, executed=False)
    assert machines.untold == ("OS",)
    assert machines.splits[0].sentences[0].startswith("The figures were imported")


def test_a_change_is_written_with_its_interval() -> None:
    sides = [tuple((None, value * one) for value in (99, 100, 101)) for one in (1.1, 1.0)]
    assert change_text(contrast([sides[0]], [sides[1]])) == "+10.0 % [7.5, 12.5]"
    assert change_text(contrast([((None, 1.0),)], [((None, 2.0),)])) == "−50.0 %"
