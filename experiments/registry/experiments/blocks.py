"""The order of an experiment's runs: blocks that hold every variant once, and the pairs of an A/A check."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import groupby
from typing import TypeVar

from experiments.models import Experiment

V = TypeVar("V")


def run_order(variants: Sequence[V], blocks: range, *, order: str, seed: int) -> list[tuple[int, V]]:
    """(block, variant) in the order of execution.

    `blocks`: every block holds each variant once, shuffled by a seeded generator, so drift of the machine hits all
    variants alike; `interleaved`: the same order in every block; `sequential`: all repetitions of one variant first.
    """
    if order == Experiment.Order.SEQUENTIAL:
        return [(block, variant) for variant in variants for block in blocks]
    pairs = []
    for block in blocks:
        members = list(variants)
        if order == Experiment.Order.BLOCKS:
            random.Random(f"{seed}/{block}").shuffle(members)  # noqa: S311 - repeatable on purpose
        pairs += [(block, variant) for variant in members]
    return pairs


def with_twins(experiment: Experiment, order: Sequence[tuple[int, V]]) -> list[tuple[int, V, bool]]:
    """The same with the profiled twin of each run in its block, where the experiment has profilers; the A/A check's
    blocks have none.

    In blocks of random order twins are shuffled among the others, so that neither always comes first; else each comes
    behind its own.
    """
    found: list[tuple[int, V, bool]] = []
    for block, pairs in groupby(order, key=lambda pair: pair[0]):
        members = [(block, variant, twin) for _, variant in pairs for twin in (False, True)]
        if not experiment.profilers or not experiment.compares(block):
            members = [one for one in members if not one[2]]
        elif experiment.order == Experiment.Order.BLOCKS:
            random.Random(f"{experiment.seed}/{block}/twins").shuffle(members)  # noqa: S311 - repeatable on purpose
        found += members
    return found
