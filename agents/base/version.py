"""Which BenchHub this is: known without Django, as a site's worker tells it to its centre."""

from __future__ import annotations

import importlib.metadata
import tomllib
from pathlib import Path

HOME = Path(__file__).resolve().parents[2]


def own_version() -> str:
    """As a checkout's pyproject.toml says, else as pip has installed it."""
    project = HOME / "pyproject.toml"
    if not project.exists():
        return importlib.metadata.version("benchhub")
    return str(tomllib.loads(project.read_text(encoding="utf-8"))["project"]["version"])
