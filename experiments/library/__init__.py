"""Recipes that BenchHub ships, as YAML beside this file."""

from __future__ import annotations

from pathlib import Path

from experiments.errors import NotFound

DIRECTORY = Path(__file__).parent / "recipes"


def recipe_text(name: str) -> str:
    """The YAML of a shipped recipe."""
    path = DIRECTORY / f"{name}.yaml"
    if path.parent != DIRECTORY or not path.is_file():
        raise NotFound(f"There is no shipped recipe {name!r}; there are {', '.join(recipe_names())}.")
    return path.read_text(encoding="utf-8")


def recipe_names() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in DIRECTORY.glob("*.yaml")))
