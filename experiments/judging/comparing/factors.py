"""The factors of an experiment: what differs between its variants, with the value that each of them really has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agents.drivers.concurrency import concurrency
from agents.drivers.rates import offered_rate_rps
from experiments.models import Experiment, Variant
from experiments.registry.documents.contents import content_of

APPLICATION, RECIPE, SERVER_HOST = "application", "recipe", "server host"
OFFERED_RATE, CONCURRENCY = "offered rate", "connections or users"

Level = str | float
"""A value of a factor: a number, or a word; "" where a variant has none."""


def experiment_factors(experiment: Experiment, variants: Sequence[Variant]) -> dict[str, list[Level]]:
    """What differs between the variants: factor -> its value in each of them.

    A parameter that a variant leaves alone has the default of its recipe, a load that it leaves alone the workload's.
    """
    recipes = {variant.recipe_id: variant.recipe for variant in variants}
    defaults = {
        pk: {name: one.default for name, one in content_of(recipe).parameters.items() if one.default is not None}
        for pk, recipe in recipes.items()
    }
    driver = content_of(experiment.workload).driver
    return factors_of(
        variants,
        [defaults[variant.recipe_id] for variant in variants],
        rate_rps=offered_rate_rps(driver),
        load=concurrency(driver),
    )


def factors_of(
    variants: Sequence[Variant],
    defaults: Sequence[Mapping[str, Any]],
    *,
    rate_rps: float | None = None,
    load: int | None = None,
) -> dict[str, list[Level]]:
    """The same from the defaults of each variant's recipe, and the workload's rate and connections or users."""
    names = dict.fromkeys(name for variant in variants for name in variant.parameters)
    given = [{**own, **variant.parameters} for variant, own in zip(variants, defaults, strict=True)]
    columns: dict[str, list[Level]] = {
        APPLICATION: [variant.application.name for variant in variants],
        RECIPE: [variant.recipe.name for variant in variants],
        SERVER_HOST: [variant.sut.name for variant in variants],
        OFFERED_RATE: [_value(variant.offered_rate_rps or rate_rps or "") for variant in variants],
        CONCURRENCY: [_value(variant.concurrency or load or "") for variant in variants],
        **{name: [_value(values.get(name, "")) for values in given] for name in names},
    }
    return {name: values for name, values in columns.items() if len(set(values)) > 1}


def levels_of(values: Sequence[Level]) -> list[Level]:
    """The values that occur, numbers ascending, then words in their order."""
    numbers = sorted({value for value in values if not isinstance(value, str)})
    return [*numbers, *dict.fromkeys(value for value in values if isinstance(value, str))]


def _value(value: Any) -> Level:
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, int | float) else str(value)
