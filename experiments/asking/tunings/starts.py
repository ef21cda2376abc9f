"""Known starts: what earlier searches and experiments found is tried first, as proposals that are measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agents.steps.recipe import Value
from experiments.analysis.tuning.space import Space
from experiments.analysis.tuning.trials import Planned, Settings, Trial
from experiments.asking.launching.choices import Choice
from experiments.asking.tunings.space import MOST_STARTS, SpaceDocument, Start
from experiments.models import StoredVerdict, Team, Tuning

MOST_LOOKED_AT = 30
BETTER = ("better", "better_size_uncertain")


def with_known_starts(
    document: SpaceDocument, team: Team, choice: Choice, metric: str, space: Space, default: Mapping[str, Value]
) -> SpaceDocument:
    """The document with its own starts first, then the answers of the team's searches and experiments with this recipe
    and metric: those of the same server and workload, then those of others. What does not fit the space is left out.
    """
    found = [*_of_searches(team, choice, metric), *_of_experiments(team, choice, metric)]
    ranked = sorted(found, key=lambda one: not one[0])
    starts = fitting([*document.starts, *(start for _, start in ranked)], space, default)
    return document.model_copy(update={"starts": tuple(starts)})


def fitting(starts: Iterable[Start], space: Space, default: Mapping[str, Value]) -> list[Start]:
    """Those that may be tried, each once and whole: what a start does not name is as in the default."""
    keys, made = {space.key(default)}, []
    for start in starts:
        config = {name: start.config.get(name, default[name]) for name in default}
        try:
            space.check(config)
        except ValueError:
            continue
        if space.key(config) not in keys:
            keys.add(space.key(config))
            made.append(Start(config=space.settled(config, default), why=start.why))
    return made[:MOST_STARTS]


def planned_starts(document: SpaceDocument, settings: Settings, trials: Sequence[Trial]) -> tuple[Planned, ...]:
    """The starts that were not tried yet and may still be, on one host after the other."""
    space, hosts = settings.space, settings.able
    tried = {space.key(one.config) for one in trials}
    whole = [space.settled({**settings.default, **one.config}, settings.default) for one in document.starts]
    starts = [(config, one.why or "a known start") for config, one in zip(whole, document.starts, strict=True)]
    left = [one for one in starts if space.key(one[0]) not in tried and not space.is_forbidden(one[0])]
    return tuple(
        Planned(config, hosts[place % len(hosts)], "explore", why)
        for place, (config, why) in enumerate(left, len(trials))
    )


def _of_searches(team: Team, choice: Choice, metric: str) -> list[tuple[bool, Start]]:
    rows = Tuning.objects.for_team(team).filter(recipe__name=choice.recipe.name, metric=metric)
    rows = rows.filter(outcome=Tuning.Outcome.BETTER).select_related("application", "workload", "sut")
    found = []
    for row in rows.order_by("-pk")[:MOST_LOOKED_AT]:
        config = {**row.parameters, **(row.smallest["config"] if row.smallest else row.winner or {})}
        found.append(_start(choice, row, config, f"the answer of tuning search {row.pk}"))
    return found


def _of_experiments(team: Team, choice: Choice, metric: str) -> list[tuple[bool, Start]]:
    rows = StoredVerdict.objects.filter(
        experiment__team=team, metric=metric, outcome__in=BETTER, candidate__recipe__name=choice.recipe.name
    ).select_related("experiment__workload", "candidate__application", "candidate__recipe", "candidate__sut")
    found = []
    for row in rows.order_by("-pk")[:MOST_LOOKED_AT]:
        defaults = {
            name: one["default"]
            for name, one in row.candidate.recipe.body.get("parameters", {}).items()
            if one.get("default") is not None
        }
        why = f"{row.candidate.name} of experiment {row.experiment_id}, which was better"
        found.append(_start(choice, row.candidate, {**defaults, **row.candidate.parameters}, why, row.experiment))
    return found


def _start(choice: Choice, row: Any, config: dict[str, Value], why: str, of: Any = None) -> tuple[bool, Start]:
    """Whether it was found on the same server with the same application and workload, and the start."""
    same_load = (row.application.name, (of or row).workload.name) == (choice.application.name, choice.workload.name)
    if row.sut_id == choice.sut.pk and same_load:
        return True, Start(config=config, why=f"{why} here"[:200])
    where = f"on {row.sut.name}" if same_load else f"on {row.sut.name}, with {(of or row).workload.name}"
    return False, Start(config=config, why=f"{why} {where}"[:200])
