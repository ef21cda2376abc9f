"""The documentation names everything that is registered."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from agents.drivers import DRIVERS
from agents.facts import FACTS
from agents.monitors import MONITORS
from agents.servers import SERVERS
from agents.steps import STEPS

ADDING = (Path(__file__).parent.parent / "docs" / "adding.md").read_text()
REGISTRIES: dict[str, Iterable[str]] = {
    "driver": DRIVERS,
    "step": STEPS,
    "server": SERVERS,
    "monitor": MONITORS,
    "fact": FACTS,
}


def documented(what: str) -> list[str]:
    """The kinds in the table whose first column is headed `what`, in order."""
    table = re.search(rf"^\| {what} \|.*\n\| --- .*\n((?:\|.*\n)+)", ADDING, re.MULTILINE)
    return re.findall(r"^\| `([a-z0-9_]+)` \|", table[1], re.MULTILINE) if table else []


@pytest.mark.parametrize("what", REGISTRIES)
def test_every_registered_kind_has_a_row_and_every_row_is_registered(what: str) -> None:
    assert documented(what) == sorted(REGISTRIES[what])


def test_every_file_that_the_guide_names_exists() -> None:
    root = Path(__file__).parent.parent
    paths = re.findall(r"`((?:agents|tests)/[A-Za-z_/]+\.py)`", ADDING)
    assert paths
    assert [path for path in paths if "NAME" not in path and not (root / path).is_file()] == []
