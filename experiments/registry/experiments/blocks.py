"""The order of an experiment's runs: blocks that hold every variant once, and the pairs of an A/A check."""

from __future__ import annotations

import random
from collections.abc import Sequence
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
