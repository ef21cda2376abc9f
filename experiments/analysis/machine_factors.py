"""Kernel, OS, memory and the like as factors: in what machines of runs differ, and what each difference comes to.

In words: docs/scaling.md.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from experiments.analysis.contrast import Contrast, Sample, contrast
from experiments.analysis.interval import Mean, mean_of
from experiments.analysis.machine_wording import effect_sentences, split_sentences

_DIGITS = re.compile(r"(\d+)")


@dataclass(frozen=True)
class Measured:
    """One repetition: what its machine was (factor -> text), what was asked of it, and its figure.

    The numbers of executed runs follow time, those of imported ones need not. `block` is that of an experiment.
    """

    number: int
    machine: Mapping[str, str]
    host: str
    setup: str
    value: float
    block: int | None = None
    executed: bool = True


@dataclass(frozen=True)
class Level:
    """The texts of a split's factors on some of the machines, and the hosts that were so."""

    texts: tuple[str, ...]
    hosts: tuple[str, ...]
    runs: int

    @property
    def name(self) -> str:
        """The text of the first factor, which no other level has."""
        return self.texts[0]


@dataclass(frozen=True)
class Cell:
    """A set-up at one level: number and value of each repetition, their mean, its change against the first level."""

    repetitions: tuple[tuple[int, float], ...]
    mean: Mean | None
    change: Contrast | None


@dataclass(frozen=True)
class Row:
    """One set-up on machines that are alike in everything else, with a cell for each level."""

    setup: str
    alike: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class EffectCell:
    """What a set-up brings at one level, and that as a ratio to what it brings at the first level."""

    brings: Contrast | None
    against_first: Contrast | None


@dataclass(frozen=True)
class Effect:
    """What a set-up brings against the first one, with a cell for each level."""

    baseline: str
    setup: str
    alike: str
    cells: tuple[EffectCell, ...]


@dataclass(frozen=True)
class Split:
    """Factors that divide the runs in the same way, so that no figure can tell them apart."""

    factors: tuple[str, ...]
    levels: tuple[Level, ...]
    rows: tuple[Row, ...]
    effects: tuple[Effect, ...]
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class Machines:
    """`splits` is empty when the machines differ in nothing that is known of all of them."""

    splits: tuple[Split, ...]
    untold: tuple[str, ...]
    """Factors that some of the runs do not tell."""


def machines_of(measured: Sequence[Measured], factors: Sequence[str]) -> Machines:
    """The splits of these repetitions by the named factors. Set-ups and levels keep the order of the first runs.

    Only like is compared with like: a set-up on machines that differ in no other factor than those of the split.
    """
    told = [name for name in factors if measured and all(one.machine.get(name) for one in measured)]
    untold = [name for name in factors if name not in told and any(one.machine.get(name) for one in measured)]
    same: dict[tuple[int, ...], list[str]] = defaultdict(list)
    for name in told:
        parts = _numbered(one.machine[name] for one in measured)
        if max(parts) > 0:
            same[parts].append(name)
    splits = [tuple(names) for names in same.values()]
    return Machines(
        tuple(_split(measured, names, [other for other in splits if other != names]) for names in splits), tuple(untold)
    )


def _split(measured: Sequence[Measured], names: tuple[str, ...], others: Sequence[tuple[str, ...]]) -> Split:
    levels = sorted({_texts(one, names) for one in measured}, key=_natural)
    rows: list[Row] = []
    effects: list[Effect] = []
    beside: dict[str, dict[str, list[list[Measured]]]] = {}
    for one in measured:
        alike = ", ".join(one.machine[name] for other in others for name in other)
        cells = beside.setdefault(alike, {}).setdefault(one.setup, [[] for _ in levels])
        cells[levels.index(_texts(one, names))].append(one)
    for alike, setups in beside.items():
        rows += [_row(setup, alike, cells) for setup, cells in setups.items() if sum(map(bool, cells)) > 1]
        baseline, *candidates = setups
        found = [_effect(baseline, setup, alike, setups[baseline], setups[setup]) for setup in candidates]
        effects += [one for one in found if sum(cell.brings is not None for cell in one.cells) > 1]
    known = tuple(_level(texts, [one for one in measured if _texts(one, names) == texts]) for texts in levels)
    sentences = split_sentences(
        names,
        hosts=[level.hosts for level in known],
        spans=[_span(one for one in measured if _texts(one, names) == texts) for texts in levels],
        compared=bool(rows),
    )
    for effect in effects:
        more = [cell.against_first for cell in effect.cells]
        sentences += effect_sentences(effect.setup, effect.baseline, [level.name for level in known], more)
    return Split(names, known, tuple(rows), tuple(effects), tuple(sentences))


def _row(setup: str, alike: str, cells: Sequence[Sequence[Measured]]) -> Row:
    first = next(cell for cell in cells if cell)
    return Row(
        setup,
        alike,
        tuple(
            Cell(
                tuple((one.number, one.value) for one in cell),
                mean_of([one.value for one in cell]),
                contrast([_sample(cell)], [_sample(first)]) if cell and cell is not first else None,
            )
            for cell in cells
        ),
    )


def _effect(
    baseline: str, setup: str, alike: str, before: Sequence[Sequence[Measured]], after: Sequence[Sequence[Measured]]
) -> Effect:
    a, b = [_sample(cell) for cell in before], [_sample(cell) for cell in after]
    both = [index for index in range(len(a)) if a[index] and b[index]]
    return Effect(
        baseline,
        setup,
        alike,
        tuple(
            EffectCell(
                contrast([b[at]], [a[at]]) if at in both else None,
                contrast([b[at], a[both[0]]], [a[at], b[both[0]]]) if at in both[1:] else None,
            )
            for at in range(len(a))
        ),
    )


def _level(texts: tuple[str, ...], runs: Sequence[Measured]) -> Level:
    return Level(texts, tuple(dict.fromkeys(one.host for one in runs if one.host)), len(runs))


def _span(runs: Iterable[Measured]) -> tuple[int, int] | None:
    """The first and the last number; None when one of the runs was not executed here, so that numbers say no time."""
    found = list(runs)
    numbers = [one.number for one in found]
    return (min(numbers), max(numbers)) if all(one.executed for one in found) else None


def _sample(cell: Sequence[Measured]) -> Sample:
    return tuple((one.block, one.value) for one in cell)


def _texts(one: Measured, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(one.machine[name] for name in names)


def _numbered(texts: Iterable[str]) -> tuple[int, ...]:
    """Each text by the place at which it came first, so that two factors with the same numbers divide alike."""
    places: dict[str, int] = {}
    return tuple(places.setdefault(text, len(places)) for text in texts)


def _natural(texts: tuple[str, ...]) -> list[list[tuple[int, int, str]]]:
    """5.14 comes before 6.8, and 16 GiB before 128 GiB."""
    return [
        [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in _DIGITS.split(text) if part]
        for text in texts
    ]
