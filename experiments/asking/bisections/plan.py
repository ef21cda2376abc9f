"""What is bisected: an ordered list of labels, and how each of them reaches the SUT.

A label is a value of one of the recipe's parameters (a commit that the recipe checks out), or a version of the recipe.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from django.db.models import Q

from agents.base.errors import PlanError
from agents.steps.recipe import RecipeDocument, Value
from experiments.asking.launching.choices import Candidate, choice_with, freeze
from experiments.models import Application, Bisection, Experiment, Host, Recipe, Run, Team, Workload
from experiments.registry.documents.contents import content_of
from experiments.registry.errors import RequestError
from experiments.registry.experiments.rules import Rules
from experiments.registry.hosts.driver_sets import driver_set
from experiments.registry.metrics.own_metrics import metric_named
from experiments.registry.notes.labels import check_labels

MOST_CANDIDATES = 200
MOST_CHARS = 100


@dataclass(frozen=True)
class BisectionPlan:
    """`labels_in_order` from the good one to the bad one. With `parameter` they are its values, without it versions."""

    name: str
    application: Application
    recipe: Recipe
    workload: Workload
    sut: Host
    drivers: Sequence[Host]
    labels_in_order: Sequence[str]
    parameter: str = ""
    parameters: Mapping[str, Value] = field(default_factory=dict)
    metric: str = "throughput_rps"
    margin_ratio: float = 0.03
    max_blocks: int = 20
    labels: Mapping[str, str] = field(default_factory=dict)
    priority: int = Run.Priority.NORMAL
    members: Mapping[str, Host] = field(default_factory=dict)

    def checked(self, team: Team) -> Bisection:
        """The bisection, not stored yet, every candidate checked as if it were launched now."""
        names = [name.strip() for name in self.labels_in_order]
        if not self.name.strip():
            raise RequestError("Give the bisection a name.", field="name")
        if not 2 <= len(names) <= MOST_CANDIDATES:
            raise RequestError(f"Give from 2 to {MOST_CANDIDATES} candidates, in order.", field="candidates")
        for name in names:
            if not name or len(name) > MOST_CHARS or not name.isprintable():
                raise RequestError(f"A candidate has 1 to {MOST_CHARS} printable characters.", field="candidates")
        if len(set(names)) != len(names):
            raise RequestError("Two candidates are the same.", field="candidates")
        metric_named(team.pk, self.metric)
        if not self.drivers:
            raise RequestError("Choose at least one driver host.", field="drivers")
        if not 0 < self.margin_ratio < 1:
            raise RequestError("The margin must be between 0 and 1 (0.03 is 3 %).", field="margin_ratio")
        rules = Rules(stop_rule=Experiment.StopRule.UNTIL_NOT_WORSE, max_blocks=self.max_blocks)
        rules.check(team.pk, order=Experiment.Order.BLOCKS, variants=2)
        bisection = Bisection(
            team=team,
            name=self.name.strip(),
            application=self.application,
            recipe=self.recipe,
            parameters=dict(self.parameters),
            workload=self.workload,
            sut=self.sut,
            drivers=driver_set(self.drivers, self.members),
            parameter=self.parameter,
            candidates=names,
            metric=self.metric,
            margin_ratio=self.margin_ratio,
            max_blocks=self.max_blocks,
            labels=check_labels(self.labels),
            priority=self.priority,
        )
        for index, name in enumerate(names):
            one = _candidate(bisection, index)
            try:
                freeze(choice_with(one, self.workload))
            except RequestError as error:
                raise RequestError(f"Candidate {name}: {error.message}", field=error.field or "candidates") from error
        return bisection


def versions_between(recipe: Recipe, good: int, bad: int) -> list[str]:
    """The versions of a recipe from the good one to the bad one, in either direction."""
    versions = Recipe.objects.filter(team_id=recipe.team_id, name=recipe.name)
    meant = Q(one_off=False) | Q(version__in=(good, bad))
    found = list(versions.filter(meant, version__range=sorted((good, bad))).order_by("version"))
    if good == bad:
        raise RequestError("The good and the bad version are the same.", field="bad_version")
    for version, field_name in ((good, "good_version"), (bad, "bad_version")):
        if version not in {one.version for one in found}:
            raise RequestError(f"{recipe.name} has no version {version}.", field=field_name)
    numbers = [str(one.version) for one in found]
    return numbers[::-1] if good > bad else numbers


def candidates_for(bisection: Bisection, index: int) -> list[Candidate]:
    """The two variants of a step: the good one as the baseline, and the one that is asked about."""
    return [_candidate(bisection, 0, is_baseline=True), _candidate(bisection, index)]


def _candidate(bisection: Bisection, index: int, *, is_baseline: bool = False) -> Candidate:
    label = bisection.candidates[index]
    recipe, parameters = bisection.recipe, dict(bisection.parameters)
    if bisection.parameter:
        parameters[bisection.parameter] = _value(content_of(recipe), bisection.parameter, label)
    else:
        recipe = _version(recipe, label)
    return Candidate(
        label if bisection.parameter else f"{recipe.name} v{label}",
        bisection.application,
        recipe,
        bisection.sut,
        bisection.drivers.in_order,
        parameters,
        is_baseline,
        members=bisection.drivers.members,
    )


def _value(document: RecipeDocument, name: str, label: str) -> Value:
    """The label as the parameter's type."""
    declared = document.parameters.get(name)
    if declared is None:
        raise RequestError(f"The recipe has no parameter {name!r}.", field="parameter")
    try:
        return declared.read(name, label)
    except PlanError as error:
        raise RequestError(error.message, field="candidates") from error


def _version(recipe: Recipe, label: str) -> Recipe:
    found: Recipe | None = None
    if label.isascii() and label.isdigit() and len(label) < 10:
        versions = Recipe.objects.filter(team_id=recipe.team_id, name=recipe.name, version=int(label))
        found = versions.first()
    if found is None:
        raise RequestError(f"{recipe.name} has no version {label}.", field="candidates")
    return found
