"""Why a candidate, or everything since a change point, is worse or better: the evidence of one page and one answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.db.models import Q

from experiments.analysis.explanations import Kind, Why, explain
from experiments.analysis.limits import MIN_FOR_VERDICT
from experiments.judging.comparing.comparison import comparable_runs, configuration_diff
from experiments.judging.comparing.functions import ComparedFunctions, compared_functions, usable_runs
from experiments.judging.explaining.measured import measured_figures
from experiments.judging.verdicts import cpu_verdicts
from experiments.models import Alert, Experiment, Run, RunProfile, StoredVerdict, Team
from experiments.registry.documents.configuration import ConfigurationDiff, Difference, diff

TO_EXPLAIN = {"worse": True, "worse_size_uncertain": True, "better": False, "better_size_uncertain": False}
MOST_AROUND = 10
"""Runs on each side of a change point that are looked at: the nearest ones."""
MOST_NAMED = 5
_CHARS = 60
_NOT_THERE = "not there"


@dataclass(frozen=True)
class Answer:
    """What goes with one change: `of` names it, `frame` says whether requests cost more or wait (quadrants).

    `baseline` and `candidate` are the numbers of the runs that were looked at; `functions` their profiles, None where
    there are none. `why` is None where there is no change to explain, which `frame` then says.
    """

    of: str
    metric: str
    frame: str
    why: Why | None
    functions: ComparedFunctions | None
    baseline: tuple[int, ...]
    candidate: tuple[int, ...]

    @property
    def runs_query(self) -> str:
        """The profiled runs of both sides as the page of functions takes them."""
        if self.functions is None:
            return ""
        before, after = (",".join(str(run.number) for run in side.runs) for side in self.functions.sides)
        return urlencode({"before": before, "after": after})


def why_of_experiment(experiment: Experiment, metric: str = "") -> list[Answer]:
    """An answer for each candidate, by its stored verdict on the metric, the deciding one by default."""
    metric = metric or experiment.primary_metric
    verdicts = list(
        experiment.verdicts.select_related("baseline", "candidate").order_by("candidate__position", "metric")
    )
    runs = [run for run in usable_runs(experiment) if experiment.compares(run.block)]
    variants = list(experiment.variants.all())
    frames = {one.name: one.verdict for one in cpu_verdicts.of_variants(experiment, variants, runs, verdicts)}
    found = []
    for verdict in verdicts:
        if verdict.metric != metric:
            continue
        ids = (verdict.baseline_id, verdict.candidate_id)
        sides = [[run for run in runs if run.variant_id == pk] for pk in ids]
        frame = frames.get(verdict.candidate.name)
        found.append(
            _of_verdict(experiment, verdict, sides[0], sides[1], frame.sentence if frame and frame.sentence else "")
        )
    return found


def why_of_alert(alert: Alert) -> Answer | None:
    """What goes with a change point: the nearest runs before it against those from it on. None of missing data."""
    if alert.kind != Alert.Kind.CHANGE or alert.run_before is None or alert.run_after is None:
        return None
    numbers = [int(number) for number in alert.trend.points["number"]]
    if alert.run_before.number not in numbers or alert.run_after.number not in numbers:
        return None
    last, first = numbers.index(alert.run_before.number), numbers.index(alert.run_after.number)
    before, after = numbers[max(0, last + 1 - MOST_AROUND) : last + 1], numbers[first : first + MOST_AROUND]
    runs = {run.number: run for run in Run.objects.for_team(alert.team).filter(number__in=[*before, *after])}
    sides = [[runs[number] for number in side if number in runs] for side in (before, after)]
    if not all(sides):
        return None
    return _answer("since then", alert.trend.metric, "", alert.worse, sides[0], sides[1], alert.team, paired=False)


def _of_verdict(
    experiment: Experiment, verdict: StoredVerdict, baseline: list[Run], candidate: list[Run], frame: str
) -> Answer:
    name, paired = verdict.candidate.name, not experiment.is_sequential
    if verdict.shown not in TO_EXPLAIN:
        functions = compared_functions((verdict.baseline.name, name), (baseline, candidate), blocks=paired)
        said = "There is no shown change to explain."
        return Answer(name, verdict.metric, said, None, functions, _numbers(baseline), _numbers(candidate))
    worse = TO_EXPLAIN[verdict.shown]
    return _answer(
        name,
        verdict.metric,
        frame,
        worse,
        baseline,
        candidate,
        experiment.team,
        paired=paired,
        names=(verdict.baseline.name, name),
    )


def _answer(
    of: str,
    metric: str,
    frame: str,
    worse: bool,
    baseline: list[Run],
    candidate: list[Run],
    team: Team,
    *,
    paired: bool,
    names: tuple[str, str] = ("before", "after"),
) -> Answer:
    functions = compared_functions(names, (_with_twins(baseline), _with_twins(candidate)), blocks=paired)
    plain = _unprofiled(baseline, candidate)
    figures = measured_figures(*plain, paired=paired)
    why = explain(
        worse=worse,
        functions=functions.changes if functions else None,
        figures=figures,
        differences=_differences(team, plain[0][-1].number, plain[1][-1].number),
        missing=_missing(functions, plain, len(figures)),
        paired=paired,
    )
    return Answer(of, metric, frame, why, functions, _numbers(plain[0]), _numbers(plain[1]))


def _with_twins(runs: Sequence[Run]) -> list[Run]:
    """The runs, and those of the same variants of the same experiments: a profiled twin is in no trend."""
    pairs = {(run.experiment_id, run.variant_id) for run in runs if run.experiment_id and run.variant_id}
    if not pairs:
        return list(runs)
    of_them = Q(pk__in=[run.pk for run in runs])
    for experiment_id, variant_id in pairs:
        of_them |= Q(experiment=experiment_id, variant=variant_id)
    found = Run.objects.filter(of_them).kept().select_related("experiment").order_by("number")
    return [run for run in found if run.is_sound and (run.experiment is None or run.experiment.compares(run.block))]


def _unprofiled(baseline: list[Run], candidate: list[Run]) -> tuple[list[Run], list[Run]]:
    """The runs without a profile, where both sides have such: a profiler changes what it looks at."""
    ids = [run.pk for run in (*baseline, *candidate)]
    taken = set(RunProfile.objects.filter(run__in=ids).values_list("run_id", flat=True))
    left, right = ([run for run in side if run.pk not in taken] for side in (baseline, candidate))
    return (left, right) if left and right else (baseline, candidate)


def _missing(functions: ComparedFunctions | None, sides: tuple[list[Run], list[Run]], figures: int) -> list[str]:
    said = []
    if functions is None:
        said.append("Functions: no run has a profile.")
    elif functions.why_not:
        said.append(f"Functions: {functions.why_not}")
    elif functions.changes is not None and functions.changes.n < MIN_FOR_VERDICT:
        said.append(f"Functions: {functions.changes.n} profiled runs of each, a verdict needs {MIN_FOR_VERDICT}.")
    least = min(len(side) for side in sides)
    if not figures:
        said.append("Waiting, machine, load: no monitor saw both sides.")
    elif least < MIN_FOR_VERDICT:
        said.append(f"Waiting, machine, load: {least} runs on one side, a verdict needs {MIN_FOR_VERDICT}.")
    return said


def _differences(team: Team, before: int, after: int) -> dict[Kind, list[str]]:
    """What differs between the newest runs of both sides without being a measured figure."""
    runs = comparable_runs(team, [before, after])
    if len(runs) < 2:
        return {}
    configuration = configuration_diff(runs)
    hardware: ConfigurationDiff = diff(
        [run.sut_profile.facts if run.sut_profile else {} for run in runs], asked=lambda _path: False
    )
    loads = [_load(run) for run in runs]
    return {
        "configuration": [
            *_named("asked for", configuration.asked),
            *_named("changed although nobody asked", configuration.drift),
        ],
        "machine": _named("of the machine", hardware.drift),
        "load": [f"Load: {loads[0]} against {loads[1]}."] if loads[0] != loads[1] else [],
    }


def _named(what: str, differences: Sequence[Difference]) -> list[str]:
    if not differences:
        return []
    named = []
    for one in differences[:MOST_NAMED]:
        before, after = (_NOT_THERE if value is None else value[:_CHARS] for value in one.values)
        named.append(f"{one.path} {before} → {after}")
    more = len(differences) - len(named)
    return [f"{what[:1].upper()}{what[1:]}: {'; '.join(named)}{f'; and {more} more' if more else ''}."]


def _load(run: Run) -> str:
    """What load was asked for, as far as the run's own choices change it."""
    if not run.spec:
        return str(run.workload or "imported")
    driver = run.spec["workload"]["driver"]
    kept = ("kind", "offered_rate_rps", "connections", "users", "rate_rps", "virtual_users")
    return ", ".join(f"{name} {driver[name]}" for name in kept if driver.get(name) is not None)


def _numbers(runs: Sequence[Run]) -> tuple[int, ...]:
    return tuple(run.number for run in runs)
