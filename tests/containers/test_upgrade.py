"""An installation of the version before this one, filled and at work, becomes this one."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.containers.compose import Stack, engine, lay_out
from tests.containers.conftest import HASTY, Table, admin
from tests.containers.site import TEAM, proxied

pytestmark = [pytest.mark.containers, pytest.mark.slow]

SEEDED = 300


@pytest.fixture
def machines(stack: Stack) -> Iterator[ExitStack]:
    """What ends the hosts and networks that a test adds."""
    with ExitStack() as ends:
        yield ends


def start_host(old: Stack, lab_image: str, name: str, ends: ExitStack) -> str:
    """A host in the network of the stack's lab, whatever that version's own profile is like; its container."""
    network = f"{old.project}_lab"
    start = ["run", "-d", "--init", "--hostname", name, "--network", network, "--network-alias", name, lab_image]
    container = engine(*start).strip()
    ends.callback(engine, "rm", "--force", "--volumes", container, check=False)
    return container


def test_an_upgrade_with_a_live_run_keeps_what_is_stored_and_the_run_goes_on(
    stack: Stack, revision: str, table: Table, tmp_path_factory: pytest.TempPathFactory, machines: ExitStack
) -> None:
    place = tmp_path_factory.mktemp("upgrade")
    old = Stack.make(place / "benchhub", f"bu{secrets.token_hex(3)}", revision, **HASTY)
    machines.callback(old.remove)
    old.sh("docker compose up -d --build")
    old.wait_until_ready()
    site = admin(old, machines.enter_context(proxied(old, place)))
    old.manage("seed_runs", str(SEEDED), "--team", TEAM)
    site.save_documents()
    image = engine("inspect", "--format", "{{.Image}}", stack.container("sut")).strip()
    hosts = {name: start_host(old, image, name, machines) for name in ("sut", "driver")}
    for name, container in hosts.items():
        site.add_host(name, lambda *said, at=container: engine("exec", at, *said))
    before = {name: old.container(name) for name in ("web", "worker-runs")}

    lay_out(old.root)
    old.sh("docker compose build")
    run = site.launch(measure_s=20)
    site.wait_until_measuring(run)
    began = time.monotonic()
    old.sh("docker compose up -d")
    old.wait_until_ready()
    ready_s = time.monotonic() - began
    found = site.wait_until_finished(run)

    assert all(old.container(name) != container for name, container in before.items())
    log = site.ask("GET", f"/runs/{run}/log")
    assert (found["outcome"], found["restore"]) == ("succeeded", "verified"), (found["failure"], log)
    assert site.hosts() >= {("sut", "ready"), ("driver", "ready")}, "beside those of the seeded runs"
    assert old.manage("shell", "-c", "from experiments.models import Run; print(Run.objects.count())").split()[
        -1
    ] == str(SEEDED + 1)
    assert site.lets_in()
    came = f"ready after {ready_s:.0f} s, run {found['outcome']}, hosts {found['restore']}"
    table.add(f"upgrade from {revision[:12]} while measuring", came, time.monotonic() - began)
