"""Known starts: what earlier searches and experiments found is tried first, as proposals that are measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.steps.recipe import RecipeDocument, Value
from experiments.analysis.tuning.space import Space
from experiments.analysis.tuning.trials import Planned, Settings, Trial
from experiments.asking.launching.choices import Choice
from experiments.asking.tunings.space import MOST_STARTS, SpaceDocument, Start, check_config
from experiments.models import StoredVerdict, Team, Tuning

MOST_LOOKED_AT = 30
BETTER = ("better", "better_size_uncertain")


@dataclass(frozen=True)
class _Known:
    """What was better once, with parameters of the recipe as it was then. `is_here`: on this server with this load."""

    is_here: bool
    config: Mapping[str, Value]
    why: str


def with_known_starts(
    document: SpaceDocument,
    team: Team,
    choice: Choice,
    metric: str,
    recipe: RecipeDocument,
    space: Space,
    default: Mapping[str, Value],
) -> SpaceDocument:
    """The document with its own starts first, then the answers of the team's searches and experiments with this recipe
    and metric: those of the same server and workload, then those of others. What does not fit the space is left out,
    and so are parameters that only another version of the recipe has.
    """
    found = [*_of_searches(team, choice, metric), *_of_experiments(team, choice, metric)]
    known = [
        Start(config=shared, why=one.why, known=True)
        for one in sorted(found, key=lambda one: not one.is_here)
        if (shared := {name: value for name, value in one.config.items() if name in default})
    ]
    starts = fitting([*document.starts, *known], recipe, space, default)
    return document.model_copy(update={"starts": tuple(starts)})


def fitting(starts: Iterable[Start], recipe: RecipeDocument, space: Space, default: Mapping[str, Value]) -> list[Start]:
    """Those that may be tried, each once: what a start does not name is as in the default."""
    keys, made = {space.key(default)}, []
    for start in starts:
        config = {name: start.config.get(name, default[name]) for name in default}
        try:
            check_config(config, recipe, space)
        except ValueError:
            continue
        if space.key(config) not in keys:
            keys.add(space.key(config))
            made.append(start)
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


def _of_searches(team: Team, choice: Choice, metric: str) -> list[_Known]:
    rows = Tuning.objects.for_team(team).filter(recipe__name=choice.recipe.name, metric=metric)
    rows = rows.filter(outcome=Tuning.Outcome.BETTER).select_related("application", "workload", "sut")
    found = []
    for row in rows.order_by("-pk")[:MOST_LOOKED_AT]:
        config = {**row.parameters, **(row.smallest["config"] if row.smallest else row.winner or {})}
        found.append(_known(choice, row, config, f"the answer of tuning search {row.pk}"))
    return found


def _of_experiments(team: Team, choice: Choice, metric: str) -> list[_Known]:
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
        found.append(_known(choice, row.candidate, {**defaults, **row.candidate.parameters}, why, row.experiment))
    return found


def _known(choice: Choice, row: Any, config: Mapping[str, Value], why: str, of: Any = None) -> _Known:
    same_load = (row.application.name, (of or row).workload.name) == (choice.application.name, choice.workload.name)
    if row.sut_id == choice.sut.pk and same_load:
        return _Known(True, config, f"{why} here"[:200])
    where = f"on {row.sut.name}" if same_load else f"on {row.sut.name}, with {(of or row).workload.name}"
    return _Known(False, config, f"{why} {where}"[:200])
