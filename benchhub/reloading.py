"""Processes that start again when their source changes, for developers (bin/dev)."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from dataclasses import replace

from benchhub.embedded import PROJECT_DIR
from benchhub.supervisor import ChildSpec

SOURCE = (".py", ".yaml", ".json", ".md")
"""What a process reads once. Templates and static files are read anew for each page."""

ANEW: Mapping[str, str] = {"BENCHHUB_COLLECTED_STATIC": "0"}
PAGES_ANEW: Mapping[str, str] = {**ANEW, "DEBUG": "1"}
"""DEBUG also shows errors with their code; a worker would only collect its queries with it."""


def is_source(_change: object, path: str) -> bool:
    """What `watchfiles` asks for each file that changed."""
    return path.endswith(SOURCE) and "/__pycache__/" not in path


def reloading(spec: ChildSpec) -> ChildSpec:
    """The same process under `watchfiles`, which stops it in order and starts it again."""
    watching = [str(path.parent) for path in sorted(PROJECT_DIR.glob("*/__init__.py"))]
    argv = [sys.executable, "-m", "watchfiles", "--target-type", "command", "--filter", f"{__name__}.is_source"]
    argv += ["--verbosity", "warning", "--ignore-permission-denied", "--sigint-timeout", str(int(spec.patience_s))]
    argv += [shlex.join(spec.argv), *watching, str(PROJECT_DIR / "docs")]
    environment = {**spec.environment, **(PAGES_ANEW if spec.name == "web" else ANEW)}
    return replace(spec, argv=tuple(argv), patience_s=spec.patience_s + 5, environment=environment)
