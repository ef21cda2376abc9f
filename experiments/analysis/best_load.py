"""Which load gave the best throughput on each CPU count, and whether enough loads were tried to know."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

from experiments.analysis.scaling_points import throughput_ratio


@dataclass(frozen=True)
class LoadTried:
    """So many connections or users on so many CPUs, and the throughput of each repetition in requests/s."""

    cpus: int
    count: int
    values: tuple[float, ...]


def best_load_sentences(tried: Sequence[LoadTried], unit: str) -> list[str]:
    """The best load of each CPU count on which several were tried, and where the best lies at the edge of the range.

    `unit` is what they are, connections or users.
    """
    by_cpus: dict[int, list[LoadTried]] = defaultdict(list)
    for one in tried:
        by_cpus[one.cpus].append(one)
    best: list[LoadTried] = []
    remarks: dict[str, list[int]] = defaultdict(list)
    for cpus, same in sorted(by_cpus.items()):
        if len({one.count for one in same}) < 2:
            continue
        best.append(max(same, key=_mean))
        if remark := _edge(same, unit):
            remarks[remark].append(cpus)
    if not best:
        return []
    each = _listed([f"{one.count:,} on {_cpus_text([one.cpus])}" for one in best])
    return [
        f"{unit.capitalize()} with the best throughput: {each}.",
        *(f"On {_cpus_text(cpus)} {remark}" for remark, cpus in remarks.items()),
    ]


def _edge(same: Sequence[LoadTried], unit: str) -> str:
    """What it means that the best of these lies at an end of their range; empty when it lies inside."""
    best = max(same, key=_mean)
    other = max((one for one in same if one.count != best.count), key=_mean)
    _, interval = throughput_ratio(best.values, other.values)
    is_clear = interval is None or interval[0] > 1
    if best.count == max(one.count for one in same):
        if is_clear:
            return f"the most {unit} that were tried, {best.count:,}, were the best: try more."
        most = f"the most {unit} that were tried, {best.count:,}, were the best"
        return f"{most}, but not clearly better than {other.count:,}: more will hardly help."
    if is_clear and 1 < best.count == min(one.count for one in same):
        return f"the fewest {unit} that were tried, {best.count:,}, were the best: try fewer."
    return ""


def _mean(one: LoadTried) -> float:
    return mean(one.values)


def _cpus_text(cpus: Sequence[int]) -> str:
    return f"{_listed([str(one) for one in cpus])} {'CPU' if list(cpus) == [1] else 'CPUs'}"


def _listed(parts: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))
