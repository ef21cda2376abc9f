"""The parameters that were chosen for a run, as text: what runs are found by and compared in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agents.steps.recipe import Value


def parameter_texts(parameters: Mapping[str, Value]) -> dict[str, str]:
    """Each value as people write it: 4g, 64, true."""
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in parameters.items()}


def parameters_of(spec: Mapping[str, Any] | None) -> dict[str, str]:
    """Those of the recipe in a frozen RunSpec; none where there is no spec."""
    return parameter_texts(spec["recipe"]["parameters"]) if spec else {}
