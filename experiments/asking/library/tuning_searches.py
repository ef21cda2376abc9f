"""Tuning searches of the library: what may be tried of each parameter, and the search of an installed one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agents.steps.recipe import Value
from experiments.asking.launching.choices import choice_with
from experiments.asking.library import catalogue
from experiments.asking.library.catalogue import TuningTemplate
from experiments.asking.library.install import Installed, Places, reference
from experiments.asking.tunings.plan import LimitWanted, TuningPlan
from experiments.asking.tunings.space import default_of, read_space, space_of
from experiments.asking.tunings.wording import shown


@dataclass(frozen=True)
class Tried:
    """One parameter: what it is compared with, and what may be tried of it, from `low` to `high` or only `choices`."""

    name: str
    description: str
    default: Value
    choices: tuple[Value, ...]
    low: Value | None
    high: Value | None
    log: bool
    only_when: str

    @property
    def said(self) -> str:
        """What may be tried in words: "128 to 1024, by orders of magnitude", "G1, Serial"."""
        if self.low is None or self.high is None:
            return ", ".join(map(shown, self.choices))
        return f"{shown(self.low)} to {shown(self.high)}{', by orders of magnitude' if self.log else ''}"


def tried(template: TuningTemplate) -> tuple[Tried, ...]:
    """What may be tried, with the recipe's own choices and bounds where the search has none."""
    (variant,) = template.variants
    document, wanted = catalogue.recipe(variant.recipe).document, read_space(template.space)
    default = default_of(wanted, document, variant.parameters)
    return tuple(
        Tried(
            name=one.name,
            description=document.parameters[one.name].description,
            default=default[one.name],
            choices=one.choices,
            low=None if one.choices else one.at(0.0),
            high=None if one.choices else one.at(1.0),
            log=one.log,
            only_when=asked.only_when,
        )
        for one, asked in zip(space_of(wanted, document).parameters, wanted.parameters, strict=True)
    )


def plan_of(template: TuningTemplate, ready: Installed, places: Places) -> TuningPlan:
    """The search on these hosts, with the space, limits, metric, margin and budget that the library has."""
    (default,) = ready.candidates(places)
    return TuningPlan(
        name=template.title,
        choice=choice_with(default, ready.workload),
        space=template.space,
        metric=template.decides,
        limits=[LimitWanted(metric, at_most=most) for metric, most in template.limits.items()],
        margin_ratio=template.margin_ratio,
        budget_runs=template.budget_runs,
        labels={"library": template.name, "scale": ready.scale},
    )


def tuning_body(plan: TuningPlan) -> dict[str, Any]:
    """What `POST /tunings` takes; documents by version, so that it means the same tomorrow."""
    choice = plan.choice
    members = {role: host.name for role, host in choice.members.items()}
    return {
        "name": plan.name,
        "application": reference(choice.application),
        "recipe": reference(choice.recipe),
        "workload": reference(choice.workload),
        "sut": choice.sut.name,
        "drivers": [host.name for host in choice.drivers],
        **({"members": members} if members else {}),
        **({"parameters": dict(choice.parameters)} if choice.parameters else {}),
        "space": dict(plan.space),
        "metric": plan.metric,
        "limits": [{"metric": one.metric, "at_most": one.at_most} for one in plan.limits],
        "margin_ratio": plan.margin_ratio,
        "budget_runs": plan.budget_runs,
        "labels": dict(plan.labels),
    }
