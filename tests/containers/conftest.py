"""One installation in containers for all tests of a session, and the table of what was done to it."""

from __future__ import annotations

import os
import secrets
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from tests.containers.compose import ROOT, Stack, engine
from tests.containers.site import PASSWORD, TEAM, USER, Site, proxied
from tests.needs import require

HASTY = {"BENCHHUB_LEASE_S": "15", "BENCHHUB_HTTPS": "1", "BENCHHUB_PROXY_COUNT": "1", "BENCHHUB_RUNS": "2"}
"""What an operator sets behind a proxy, and a short lease: a killed worker's runs are adopted after it."""


@dataclass
class Table:
    """What was done and what came of it, for the end of the session."""

    rows: list[tuple[str, ...]] = field(default_factory=list)

    def add(self, done: str, came: str, seconds: float) -> None:
        self.rows.append((done, came, f"{seconds:.0f} s"))


TABLE = Table()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if not TABLE.rows:
        return
    widths = [max(map(len, column)) for column in zip(*TABLE.rows, strict=True)]
    terminalreporter.section("BenchHub in containers")
    for row in TABLE.rows:
        terminalreporter.line("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)))


@pytest.fixture(scope="session")
def table() -> Table:
    return TABLE


@pytest.fixture(scope="session", autouse=True)
def an_engine() -> None:
    """bin/test-containers brings one up where it can."""
    try:
        engine("info")
    except (AssertionError, OSError) as error:
        require(False, f"a container engine ({str(error)[-300:]})", "bin/test-containers brings one")


def admin(stack: Stack, site: Site) -> Site:
    """The first administrator and a token for the API, as the guide makes them."""
    make = ["createadmin", "--user", USER, "--team", TEAM, "--password-file", "/dev/stdin"]
    stack.do("exec", "-T", "web", "python", "manage.py", *make, given=PASSWORD)
    scopes = ["--scopes", "read,launch,write,admin"]
    site.token = stack.manage("token", "create", "--team", TEAM, "--user", USER, "--name", "tests", *scopes).strip()
    return site


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory, table: Table) -> Iterator[Stack]:
    """Built, started and ready, the lab too."""
    place = tmp_path_factory.mktemp("containers") / "benchhub"
    stack = Stack.make(place, f"bh{secrets.token_hex(3)}", COMPOSE_PROFILES="lab", **HASTY)
    try:
        began = time.monotonic()
        stack.sh("docker compose build")
        table.add("build, both images", "", time.monotonic() - began)
        began = time.monotonic()
        stack.sh("docker compose up -d")
        stack.wait_until_ready()
        table.add("start", "ready", time.monotonic() - began)
        yield stack
    finally:
        stack.remove()


@pytest.fixture(scope="session")
def site(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The same behind its proxy, with an administrator, documents and both hosts of the lab."""
    with proxied(stack, tmp_path_factory.mktemp("proxy")) as site:
        admin(stack, site)
        site.save_documents()
        for name in ("sut", "driver"):
            site.add_host(name, partial(stack.on, name))
        yield site


@pytest.fixture(scope="session")
def revision() -> str:
    """The version before this one: BENCHHUB_UPGRADE_FROM, else the newest that was tagged, else the last commit."""
    if named := os.environ.get("BENCHHUB_UPGRADE_FROM"):
        return named
    for ask in (["git", "describe", "--tags", "--abbrev=0", "HEAD^"], ["git", "rev-parse", "HEAD^"]):
        found = subprocess.run(ask, cwd=ROOT, capture_output=True, text=True, check=False)
        if found.returncode == 0:
            return found.stdout.strip()
    require(False, "a commit before the last one", "clone with the history")
    return ""
