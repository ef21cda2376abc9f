"""Which member of a system of several hosts is its limit, by how busy the CPUs of each were.

Source: the bottleneck of a queueing network is the station with the highest utilisation (Denning and Buzen, 1978).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from experiments.analysis.findings import Finding, HostFigures, LoadFigures, Thresholds, percent

FULL_RATIO = 0.85
"""From here on a member's CPUs count as used up. BenchHub's choice."""
CLEAR_RATIO = 0.10
"""By so much the fullest must be above every other: less is no order that another run would show again."""
SHARED_RATIO = 1.05
"""Members whose processes used no more than this of their CPUs in all may have shared them. BenchHub's choice."""
LEAST_OWN_RATIO = 0.5
"""Below this share of the busy time the members' own processes did not fill the CPUs. BenchHub's choice."""
OURS = "the station with the highest utilisation bounds a system; the numbers are BenchHub's choice"


@dataclass(frozen=True)
class SystemLimit:
    """`role` is the member that limits, "" where none can be named; the sentence says why in either case."""

    role: str
    sentence: str


def limit_of(
    uses: Mapping[str, float | None], own: Mapping[str, float | None] = MappingProxyType({})
) -> SystemLimit | None:
    """The limit among members (role -> how busy its CPUs were, 1.0 = all of them; None = not seen).

    `own` is the share of them that the member's own processes used: it tells members apart whose hosts are guests of
    one machine and show each other's work as theirs. None for fewer than two members.
    """
    if len(uses) < 2:
        return None
    seen = sorted(((use, role) for role, use in uses.items() if use is not None), key=lambda pair: (-pair[0], pair[1]))
    unseen = [role for role, use in uses.items() if use is None]
    if unseen:
        return SystemLimit(
            "", f"Which member is the limit is not known: the CPUs of {', '.join(unseen)} were not seen."
        )
    (most, first), (next_most, _) = seen[0], seen[1]
    others = ", ".join(f"{role} {percent(use)}" for use, role in seen[1:])
    if most < FULL_RATIO:
        told = ", ".join(f"{role} {percent(use)}" for use, role in seen)
        return SystemLimit("", f"No member's CPUs were used up ({told}), so the CPUs of none are the limit.")
    if most - next_most < CLEAR_RATIO:
        full = [role for use, role in seen if most - use < CLEAR_RATIO]
        equally = f"the CPUs of {' and '.join(full)} were about equally full ({percent(most)})"
        return _of_shared_cpus(full, own, equally, most) or SystemLimit("", f"No one member is the limit: {equally}.")
    return SystemLimit(first, f"The {first} is the limit: its CPUs were {percent(most)} busy, those of {others}.")


def _of_shared_cpus(
    full: Sequence[str], own: Mapping[str, float | None], equally: str, busy: float
) -> SystemLimit | None:
    """The limit among members that are equally full; None where their processes cannot have shared CPUs, or none of
    them used clearly more than the others, of what they used together."""
    used = sorted(((use, role) for role in full if (use := own.get(role)) is not None), reverse=True)
    together = sum(use for use, _ in used)
    if len(used) < len(full) or not 0 < together <= SHARED_RATIO:
        return None
    if together < LEAST_OWN_RATIO * busy:
        others = f"their own processes used {percent(together)} in all, so other programs filled them"
        return SystemLimit("", f"No one member is the limit: {equally}, and {others}.")
    (most, first), (next_most, _) = used[0], used[1]
    if (most - next_most) / together < CLEAR_RATIO:
        return None
    others = ", ".join(f"{role} {percent(use)}" for use, role in used[1:])
    return SystemLimit(
        first,
        f"The {first} is the limit: {equally} with no more than one machine's work in all, so they may have shared "
        f"them; the {first}'s own processes used {percent(most)}, those of {others}.",
    )


def a_member_is_the_limit(hosts: HostFigures, load: LoadFigures, limits: Thresholds) -> Finding | None:
    """Nothing is wrong with a full member; who tunes wants to know which one it is."""
    found = limit_of(hosts.member_uses, hosts.member_own)
    if found is None:
        return None
    evidence: dict[str, float | str] = {
        f"{role}_cpu_ratio": round(use, 4) for role, use in hosts.member_uses.items() if use is not None
    }
    evidence |= {f"{role}_own_cpu_ratio": round(use, 4) for role, use in hosts.member_own.items() if use is not None}
    return Finding("system_limit", "ok", found.sentence, evidence | ({"limit": found.role} if found.role else {}), OURS)
