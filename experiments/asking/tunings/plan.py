"""What a tuning search is asked for, checked against the recipe and the hosts before anything is stored."""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from agents.steps.recipe import RecipeDocument, Value
from experiments.analysis.tuning.space import Config, Space
from experiments.analysis.tuning.trials import FEWEST_RUNS
from experiments.asking.launching.choices import Choice, freeze_for
from experiments.asking.tunings.memory import check_memory
from experiments.asking.tunings.space import check_starts, checked_space, default_of, read_space, typed
from experiments.asking.tunings.starts import with_known_starts
from experiments.asking.tunings.suts import check_suts
from experiments.judging.evidence.roles import names_of_members
from experiments.models import Host, Member, Run, Tuning, TuningSut
from experiments.registry.documents.contents import content_of
from experiments.registry.errors import RequestError
from experiments.registry.hosts.driver_sets import driver_set
from experiments.registry.metrics.own_metrics import check_metrics, metric_named
from experiments.registry.notes.labels import check_labels
from experiments.running.queue.estimates import estimates_for

MOST_RUNS = 300
MOST_HOURS = 24 * 14
MOST_LIMITS = 8
NO_OBJECTIVE = "errors_total"
"""At its best it is 0, and all figures of a search are compared by ratios."""


@dataclass(frozen=True)
class LimitWanted:
    """A metric that a recommended configuration must keep at most, or at least, at a value."""

    metric: str
    at_most: float | None = None
    at_least: float | None = None


@dataclass(frozen=True)
class TuningPlan:
    """`space` as in `experiments.asking.tunings.space`. `reduces`: the smallest recipe is looked for at the end.

    `warm`: what earlier searches and experiments found is tried first. `further_suts` are servers equal to the SUT,
    among which the trials are divided, `confirm_sut` is one more on which alone the answer is confirmed.
    `confirm_after_hours`: so long it pauses before the confirmation, which is so made on another day.
    """

    name: str
    choice: Choice
    space: Mapping[str, Any]
    metric: str = "throughput_rps"
    limits: Sequence[LimitWanted] = ()
    margin_ratio: float = 0.03
    budget_runs: int = 60
    budget_hours: float | None = None
    reduces: bool = False
    warm: bool = True
    further_suts: Sequence[Host] = ()
    confirm_sut: Host | None = None
    confirm_after_hours: float | None = None
    seed: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    priority: int = Run.Priority.NORMAL

    def checked(self, member: Member) -> Tuning:
        """The search, not stored yet. RequestError names the field that does not fit."""
        team, choice = member.team, self.choice
        of_members = names_of_members(content_of(choice.application))
        metric = metric_named(team.pk, self.metric, of_members=of_members)
        if self.metric == NO_OBJECTIVE:
            said = f"At its best {self.metric} is 0, to which nothing has a ratio: make it a limit, of 0 or more."
            raise RequestError(said, field="metric")
        check_metrics(team.pk, [one.metric for one in self.limits], field="limits", of_members=of_members)
        limits = [_limit(one) for one in self.limits]
        if len(limits) > MOST_LIMITS or len({one["metric"] for one in limits}) < len(limits):
            raise RequestError(f"Give at most {MOST_LIMITS} limits, each of another metric.", field="limits")
        if not 0 < self.margin_ratio < 1:
            raise RequestError("The margin must be between 0 and 1 (0.03 is 3 %).", field="margin_ratio")
        check_budget(self.budget_runs, self.budget_hours, _run_s(choice))
        if self.confirm_after_hours is not None and not 0 < self.confirm_after_hours <= MOST_HOURS:
            said = f"Give at most {MOST_HOURS} hours until the confirmation, or none."
            raise RequestError(said, field="confirm_after_hours")
        if not choice.drivers:
            raise RequestError("Choose at least one driver host.", field="drivers")
        document: RecipeDocument = content_of(choice.recipe)
        wanted = typed(read_space(self.space), document)
        space = checked_space(wanted, document)
        default = default_of(wanted, document, choice.parameters)
        try:
            space.check(default)
        except ValueError as error:
            said = f"The default, which all is compared with, must be in what may be tried: {error}."
            raise RequestError(said, field=f"space.{str(error).partition(':')[0]}") from error
        check_starts(wanted, document, space, default)
        check_suts(member, choice, self.further_suts, self.confirm_sut)
        for sut in (choice.sut, *self.further_suts, *filter(None, [self.confirm_sut])):
            _check_launchable(member, replace(choice, sut=sut), document, space, default)
            check_memory(document, space, choice.parameters, sut, choice.members)
        if self.warm:
            wanted = with_known_starts(wanted, team, choice, self.metric, document, space, default)
        return Tuning(
            team=team,
            name=self.name.strip(),
            application=choice.application,
            recipe=choice.recipe,
            parameters=dict(choice.parameters),
            workload=choice.workload,
            sut=choice.sut,
            drivers=driver_set(choice.drivers, choice.members),
            space=wanted.model_dump(mode="json"),
            default=default,
            metric=self.metric,
            higher_is_better=metric.higher_is_better,
            limits=limits,
            margin_ratio=self.margin_ratio,
            budget_runs=self.budget_runs,
            budget_hours=self.budget_hours,
            reduces=self.reduces,
            warm=self.warm,
            confirm_after_hours=self.confirm_after_hours,
            seed=secrets.randbelow(2**31) if self.seed is None else self.seed,
            labels=check_labels(self.labels),
            priority=self.priority,
        )

    def suts_of(self, tuning: Tuning) -> list[TuningSut]:
        """The rows of its servers beside the SUT, not stored yet."""
        rows = [TuningSut(tuning=tuning, host=host) for host in self.further_suts]
        rows += [TuningSut(tuning=tuning, host=self.confirm_sut, confirms=True)] if self.confirm_sut else []
        for place, row in enumerate(rows, 1):
            row.position = place
        return rows


def check_budget(runs: int, hours: float | None, run_s: float) -> None:
    """RequestError when nothing can be found with it."""
    if not FEWEST_RUNS <= runs <= MOST_RUNS:
        raise RequestError(f"Give a budget of {FEWEST_RUNS} to {MOST_RUNS} runs.", field="budget_runs")
    if hours is None:
        return
    if not 0 < hours <= MOST_HOURS:
        raise RequestError(f"Give at most {MOST_HOURS} hours, or none.", field="budget_hours")
    if run_s and hours * 3600 / run_s < FEWEST_RUNS:
        needed = FEWEST_RUNS * run_s / 3600
        raise RequestError(
            f"A run takes about {run_s:.0f} s, and a search needs {FEWEST_RUNS}: give {needed:.1f} hours or more.",
            field="budget_hours",
        )


def choice_with_config(tuning: Tuning, config: Config, host: int = 0) -> Choice:
    """What a run of this configuration is made of, on the server at this place of the search's."""
    return Choice(
        application=tuning.application,
        recipe=tuning.recipe,
        workload=tuning.workload,
        sut=tuning.suts[host],
        drivers=tuning.drivers.in_order,
        parameters={**tuning.parameters, **config},
        members=tuning.drivers.members,
    )


def _limit(one: LimitWanted) -> dict[str, Any]:
    if (one.at_most is None) == (one.at_least is None):
        raise RequestError(
            f"{one.metric}: give the largest value (at_most) or the smallest (at_least).", field="limits"
        )
    value = one.at_most if one.at_least is None else one.at_least
    if value is None or not math.isfinite(value) or (value and not math.isfinite(1 / value)):
        raise RequestError(f"{one.metric}: {value} is no number to keep.", field="limits")
    if one.at_most is not None and one.at_most < 0:
        raise RequestError(f"{one.metric}: the largest value is 0 or more.", field="limits")
    if one.at_least is not None and one.at_least <= 0:
        raise RequestError(f"{one.metric}: the smallest value is above 0.", field="limits")
    return asdict(one)


def _run_s(choice: Choice) -> float:
    estimates = estimates_for({choice.workload.pk}, {choice.sut.pk})
    return estimates.takes_s(choice.workload.pk, choice.sut.pk)


def _check_launchable(
    member: Member, choice: Choice, document: RecipeDocument, space: Space, default: Mapping[str, Value]
) -> None:
    """Freeze the default and each end of each parameter as if they were launched now, on these hosts."""
    configs: list[tuple[str, Config]] = [("", default)]
    for one in space.parameters:
        ends = one.choices or (one.at(0.0), one.at(1.0))
        configs += [(one.name, {**default, one.name: value}) for value in ends]
    for name, config in configs:
        if name and space.is_forbidden(config):
            continue
        try:
            freeze_for(member, replace(choice, parameters={**choice.parameters, **config}))
        except RequestError as error:
            if not name:
                raise
            said = f"{name} = {config[name]}: {error.message}"
            raise RequestError(said, field=f"space.{name}") from error
