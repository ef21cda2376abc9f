"""The recipes that BenchHub ships."""

from __future__ import annotations

import pytest

from agents.recipe import RecipeDocument
from experiments.library import recipe_names, recipe_text
from experiments.yaml_text import parse_yaml


@pytest.mark.parametrize("name", recipe_names())
def test_a_shipped_recipe_resolves_with_its_defaults_and_needs_no_shell(name: str) -> None:
    document = RecipeDocument.model_validate(parse_yaml(recipe_text(name)))
    steps = document.resolve({}, built_in={"sut_cpu_count": 8})
    assert steps
    assert document.description
    assert not any(step.needs_shell for step in steps)
