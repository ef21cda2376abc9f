"""What a request costs in each function of two sets of profiled runs, and all that must be said beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from agents.profiles.base.profile import Profile
from agents.profiles.call_tree import CallTree, call_tree
from agents.profiles.functions import functions_of
from agents.profiles.names import normal_name
from agents.spec import RunSpec
from experiments.analysis.function_costs import FunctionChanges, ProfiledRun, compare_functions, why_incomparable
from experiments.judging.verdicts.profiling_costs import Pair, costs_of_pairs, distortion
from experiments.models import Experiment, Run, RunProfile, Team
from experiments.registry.errors import RequestError
from experiments.registry.runs.run_profiles import folded

MOST_LOST_RATIO = 0.02
"""Of the samples: with more of them lost it is said."""
MOST_RUNS = 60
"""Of each side: more profiles than that are not read for a page."""
Taken = tuple[str, str, str]


@dataclass(frozen=True)
class Side:
    """One side of a comparison: its name, the runs that have a profile of the kind that is compared, and those."""

    name: str
    runs: tuple[Run, ...]
    profiles: tuple[RunProfile, ...]

    @cached_property
    def read(self) -> tuple[Profile, ...]:
        return tuple(folded(one) for one in self.profiles)

    @property
    def pairs(self) -> list[tuple[Run, RunProfile]]:
        """Each run with its profile."""
        return list(zip(self.runs, self.profiles, strict=True))

    @property
    def samples(self) -> int | None:
        known = [one.samples for one in self.profiles if one.samples is not None]
        return sum(known) if len(known) == len(self.profiles) else None

    @property
    def lost_samples(self) -> int | None:
        known = [one.lost_samples for one in self.profiles if one.lost_samples is not None]
        return sum(known) if len(known) == len(self.profiles) else None

    @property
    def unknown_ratio(self) -> float:
        """Of the profile that knows least."""
        return max((one.unknown_ratio for one in self.profiles), default=0.0)


@dataclass(frozen=True)
class ComparedFunctions:
    """Both sides; `why_not` says why there is no difference: `changes` is None then. `notes`: what to mind."""

    baseline: Side
    candidate: Side
    why_not: str
    changes: FunctionChanges | None
    notes: tuple[str, ...]

    @property
    def sides(self) -> tuple[Side, Side]:
        return self.baseline, self.candidate

    @property
    def side_names(self) -> tuple[str, str]:
        return self.baseline.name, self.candidate.name

    @property
    def event(self) -> str:
        return self.baseline.profiles[0].event if self.baseline.profiles else ""

    @property
    def engine(self) -> str:
        return self.baseline.profiles[0].engine if self.baseline.profiles else ""

    def tree(self) -> CallTree:
        """The calls of both sides under normal names, in CPU microseconds per request, the mean of each side's runs.

        Without a difference in shares of each side's CPU time: what cannot be compared may still be looked at.
        """
        costs = self.changes is not None
        sides = [
            [
                (profile, (stored.cost_us or 0.0 if costs else 1.0) / profile.weight / len(side.profiles))
                for profile, stored in zip(side.read, side.profiles, strict=True)
            ]
            for side in (self.baseline, self.candidate)
        ]
        return call_tree(sides, normal_name)


def functions_of_variants(experiment: Experiment, *, role: str = "") -> list[ComparedFunctions]:
    """The profiled runs of each candidate against those of the baseline; candidates without any are left out."""
    runs = [run for run in usable_runs(experiment) if experiment.compares(run.block)]
    variants = list(experiment.variants.order_by("position"))
    baseline = next((variant for variant in variants if variant.is_baseline), None)
    if baseline is None:
        return []
    found = []
    for candidate in variants:
        if candidate.pk == baseline.pk:
            continue
        sides = [[run for run in runs if run.variant_id == variant.pk] for variant in (baseline, candidate)]
        names = (baseline.name, candidate.name)
        compared = compared_functions(names, sides, role=role, blocks=not experiment.is_sequential)
        if compared is not None and compared.candidate.profiles:
            found.append(compared)
    return found


def runs_listed(team: Team, text: str, *, field: str) -> list[Run]:
    """The usable runs of a list of numbers such as 12,13. RequestError names the field, or a run that is not there."""
    words = [word.strip().lstrip("#") for word in text.split(",") if word.strip()]
    if not words or len(words) > MOST_RUNS or not all(w.isascii() and w.isdigit() and len(w) < 10 for w in words):
        raise RequestError(f"Give 1 to {MOST_RUNS} run numbers.", field=field)
    numbers = list(dict.fromkeys(int(word) for word in words))
    found = {run.number: run for run in Run.objects.for_team(team).filter(number__in=numbers)}
    missing = [number for number in numbers if number not in found]
    if missing:
        raise RequestError(f"There is no run #{missing[0]}.", field=field)
    return [found[number] for number in numbers]


def usable_runs(experiment: Experiment) -> list[Run]:
    """The experiment's sound runs and their profiled twins, in the order of their numbers."""
    found = experiment.runs.kept().select_related("variant").order_by("number")
    return [run for run in found if run.is_sound]


def compared_functions(
    names: tuple[str, str], runs: Sequence[Sequence[Run]], *, role: str = "", blocks: bool = False
) -> ComparedFunctions | None:
    """The profiles that two sets of runs have of one part of the system; None when neither has any.

    `blocks`: runs of the same block are a pair. Of several profiles of a run that kind counts that most runs have.
    """
    rows = RunProfile.objects.filter(run__in=[run.pk for side in runs for run in side], role=role)
    found: dict[int, list[RunProfile]] = {}
    for one in rows.order_by("run", "name"):
        found.setdefault(one.run_id, []).append(one)
    if not found:
        return None
    kinds = Counter(_taken(one) for of_run in found.values() for one in of_run if one.counts_cpu)
    kind = max(kinds, key=lambda one: (kinds[one], one), default=None)
    sides = [_side(name, side, found, kind) for name, side in zip(names, runs, strict=True)]
    if kind is None:
        events = sorted({one.event or "something else" for of_run in found.values() for one in of_run})
        why = f"The profiles are of {' and '.join(events)}, which is no CPU time: there is no cost per request."
        return ComparedFunctions(sides[0], sides[1], why, None, ())
    profiled = [_profiled(side, blocks=blocks) for side in sides]
    why = why_incomparable(*profiled)
    changes = None if why else compare_functions(*profiled)
    notes = _notes(sides, runs, changes)
    return ComparedFunctions(sides[0], sides[1], why, changes, notes)


def _side(name: str, runs: Sequence[Run], found: dict[int, list[RunProfile]], kind: Taken | None) -> Side:
    chosen = []
    for run in runs:
        profiles = [one for one in found.get(run.pk, ()) if kind is None or one.counts_cpu]
        if profiles:
            # One of another kind stands in where a run has none of this: the comparison is then refused, in words.
            chosen.append((run, min(profiles, key=lambda one: (_taken(one) != kind, one.name))))
    chosen = chosen[-MOST_RUNS:]
    return Side(name, tuple(run for run, _ in chosen), tuple(profile for _, profile in chosen))


def _taken(one: RunProfile) -> Taken:
    return one.profiler, one.event, one.engine


def _profiled(side: Side, *, blocks: bool) -> list[ProfiledRun]:
    found = []
    for run, stored, profile in zip(side.runs, side.profiles, side.read, strict=True):
        functions = functions_of(profile)
        found.append(
            ProfiledRun(
                block=run.block if blocks else None,
                event=stored.event or None,
                engine=stored.engine or stored.profiler,  # what nobody said of two profilers is not the same
                cpu_s=stored.cpu_time_s or 0.0,
                requests=stored.requests or 0,
                samples=stored.samples,
                unknown_ratio=stored.unknown_ratio,
                self_ratio=functions.self_ratio,
                total_ratio=functions.total_ratio,
            )
        )
    return found


def _notes(sides: Sequence[Side], runs: Sequence[Sequence[Run]], changes: FunctionChanges | None) -> tuple[str, ...]:
    pairs = _pairs(sides, runs)
    said = [distortion(costs_of_pairs(pairs[0][0].team_id, pairs)) if pairs else ""]
    if any(_is_closed(run) for side in sides for run in side.runs):
        said.append(
            "The load was closed: a server near its limit works in another way than one with room. Offer a rate where "
            "functions are to be explained."
        )
    lost = sum(side.lost_samples or 0 for side in sides)
    kept = sum(side.samples or 0 for side in sides)
    if lost and kept and lost > MOST_LOST_RATIO * (kept + lost):
        ratio = lost / (kept + lost)
        said.append(f"{ratio:.1%} of the samples were lost: what was lost may not be like what was kept.")
    if changes is not None and changes.n < 5:
        said.append(f"Profiled runs of each side: {changes.n}. An interval needs 3, a verdict 5.")
    return tuple(one for one in said if one)


def _pairs(sides: Sequence[Side], runs: Sequence[Sequence[Run]]) -> list[Pair]:
    """Runs of the same variant and block, without a profile and with one."""
    pairs: dict[tuple[int, int], dict[bool, Run]] = {}
    for number, (side, every) in enumerate(zip(sides, runs, strict=True)):
        taken = {run.pk for run in side.runs}
        for run in every:
            if run.block is not None:
                pairs.setdefault((number, run.block), {})[run.profiled or run.pk in taken] = run
    return [(pair[False], pair[True]) for _, pair in sorted(pairs.items()) if len(pair) == 2]


def _is_closed(run: Run) -> bool:
    return bool(run.spec) and RunSpec.model_validate(run.spec).workload.driver.load_model == "closed"
