"""What goes with a change: one ordered list of explanations, each with an interval or as a plain difference.

A difference counts as shown when its p-value, corrected (Holm) for all that was looked at together, is at most 5 %;
without that nothing is called an explanation. A measured figure is compared run by run, in pairs where runs are. The
order is that of where people look: what requests cost, what they wait for, what was changed, the machine, the load.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from experiments.analysis.families import holm
from experiments.analysis.function_costs import FunctionChanges
from experiments.analysis.limits import ALPHA, MIN_FOR_INTERVAL, MIN_FOR_VERDICT
from experiments.analysis.number_text import MINUS, figure_text
from experiments.analysis.verdict import Arms, Interval, change_of_means

Kind = Literal["functions", "waiting", "configuration", "machine", "load"]
KINDS: tuple[Kind, ...] = ("functions", "waiting", "configuration", "machine", "load")
Evidence = Literal["interval", "difference", "against"]
"""Shown by an interval that leaves out 0, a plain difference without one, or shown but in the other direction."""

NOTHING = "Nothing that was measured explains it."
MOST_FUNCTIONS = 10
_BYTES = 2**20


@dataclass(frozen=True)
class Measured:
    """One figure of the runs of both sides, a value for each run, in pairs where the runs are in blocks.

    `what` is its name in words; `more_is_worse` says which direction goes with a loss.
    """

    kind: Kind
    name: str
    what: str
    unit: str
    more_is_worse: bool
    baseline: tuple[float, ...]
    candidate: tuple[float, ...]


@dataclass(frozen=True)
class Explanation:
    """One entry. `change` and `ci95` are in `unit`, None of a plain difference; `name` is what it is about."""

    kind: Kind
    evidence: Evidence
    name: str
    sentence: str
    unit: str = ""
    change: float | None = None
    ci95: Interval | None = None
    adjusted_p: float | None = None


@dataclass(frozen=True)
class Why:
    """The answer: its first sentence, the explanations in order, and what there is nothing about.

    `measured`: how many figures and functions were compared; `missing` says what was not, a sentence each.
    """

    headline: str
    found: tuple[Explanation, ...]
    missing: tuple[str, ...]
    measured: int


def explain(
    *,
    worse: bool,
    functions: FunctionChanges | None,
    figures: Sequence[Measured],
    differences: Mapping[Kind, Sequence[str]],
    missing: Sequence[str] = (),
    paired: bool,
) -> Why:
    """What goes with a change for the worse (or the better) of two sets of runs.

    `differences` are sentences about what differs without being a measured figure. What was shown to change in the
    direction that does not fit stands last, as `against`: leaving it out would make the rest look surer than it is.
    The method and its sources: docs/profiles.md, docs/verdicts.md.
    """
    shown = [*_functions(functions, worse), *_figures(figures, worse, "blocked" if paired else "independent")]
    plain = [Explanation(kind, "difference", "", text) for kind in KINDS for text in differences.get(kind, ())]
    fitting = [one for one in shown if one.evidence == "interval"]
    found = [
        *sorted(fitting, key=lambda one: KINDS.index(one.kind)),
        *plain,
        *sorted((one for one in shown if one.evidence == "against"), key=lambda one: KINDS.index(one.kind)),
    ]
    measured = len(figures) + (len(functions.own) if functions else 0)
    return Why(_headline(fitting, plain, measured, worse), tuple(found), tuple(missing), measured)


def _headline(fitting: Sequence[Explanation], plain: Sequence[Explanation], measured: int, worse: bool) -> str:
    if fitting:
        kinds = [kind for kind in KINDS if any(one.kind == kind for one in fitting)]
        words = {
            "functions": f"functions cost {'more' if worse else 'less'} for each request",
            "waiting": f"something was waited for {'more' if worse else 'less'}",
            "configuration": "the configuration",
            "machine": "the machine ran in another way",
            "load": "the load was another one",
        }
        return f"{'; '.join(words[kind] for kind in kinds).capitalize()}: shown by an interval that leaves out 0."
    if plain:
        return f"{NOTHING} Something differs all the same; whether that is why, no interval says."
    return NOTHING if measured else "Nothing was measured that could explain it."


def _functions(changes: FunctionChanges | None, worse: bool) -> list[Explanation]:
    if changes is None:
        return []
    found = []
    for row in changes.own:
        if row.verdict not in ("more", "less") or row.ci95_us is None:
            continue
        low, high = row.ci95_us
        if low <= 0 <= high:  # the correction judged it so, and yet no sentence is said without such an interval
            continue
        fits = (row.change_us > 0) == worse
        gone = ", and is gone" if row.candidate_us == 0 else ", and is new" if row.baseline_us == 0 else ""
        text = (
            f"{row.name} costs {figure_text(row.candidate_us, 3)} µs of CPU per request against "
            f"{figure_text(row.baseline_us, 3)} µs: {_signed(row.change_us, 'µs')} "
            f"[{_plain(low)}, {_plain(high)}]{gone}."
        )
        evidence: Evidence = "interval" if fits else "against"
        found.append(
            Explanation("functions", evidence, row.name, text, "us", row.change_us, row.ci95_us, row.adjusted_p)
        )
    fitting = [one for one in found if one.evidence == "interval"][:MOST_FUNCTIONS]
    return [*fitting, *[one for one in found if one.evidence == "against"][:MOST_FUNCTIONS]]


def _figures(figures: Sequence[Measured], worse: bool, design: Arms) -> list[Explanation]:
    """The figures whose change is shown, the clearest first: those with the smallest p, corrected for all of them."""
    judged = []
    for one in figures:
        a, b = np.array(one.baseline), np.array(one.candidate)
        pairs = design == "blocked" and len(a) == len(b)
        if min(len(a), len(b)) < MIN_FOR_INTERVAL:
            continue
        change = change_of_means(a, b, "blocked" if pairs else "independent")
        judged.append((one, change, change.p_value() if min(len(a), len(b)) >= MIN_FOR_VERDICT else 1.0))
    adjusted = holm([p for *_, p in judged]).adjusted_p if judged else ()
    found = []
    for (one, change, _), p in sorted(zip(judged, adjusted, strict=True), key=lambda pair: pair[1]):
        low, high = change.interval(0.95)
        if p > ALPHA or low <= 0 <= high:
            continue
        fits = ((change.estimate > 0) == one.more_is_worse) == worse
        before, after = float(np.mean(one.baseline)), float(np.mean(one.candidate))
        text = (
            f"{one.what}: {_text(after, one.unit)} against {_text(before, one.unit)}, "
            f"{_signed(*_shown(change.estimate, one.unit))} "
            f"[{_plain(_shown(low, one.unit)[0])}, {_plain(_shown(high, one.unit)[0])}]."
        )
        evidence: Evidence = "interval" if fits else "against"
        found.append(Explanation(one.kind, evidence, one.name, text, one.unit, change.estimate, (low, high), p))
    return found


def _shown(value: float, unit: str) -> tuple[float, str]:
    """The value as people read it, with the unit in words: ratios in points of a percent, bytes in MiB."""
    if unit == "ratio":
        return 100 * value, "points"
    if unit in ("bytes", "bytes_per_s"):
        return value / _BYTES, "MiB" if unit == "bytes" else "MiB/s"
    words = {"count": "", "mhz": "MHz", "ms": "ms"}
    return value, words.get(unit, unit.replace("_per_s", "/s").replace("_", " "))


def _text(value: float, unit: str) -> str:
    number, word = _shown(value, unit)
    return f"{figure_text(number, 3)} {'%' if unit == 'ratio' else word}".rstrip()


def _signed(value: float, word: str) -> str:
    return f"{'+' if value > 0 else ''}{_plain(value)} {word}".rstrip()


def _plain(value: float) -> str:
    return figure_text(value, 3).replace("-", MINUS, 1) if value < 0 else figure_text(value, 3)
