"""Hosts made of namespaces, and sessions on them; without root the tests that need them are skipped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from agents.remote.address import Address
from agents.remote.ssh import SshSession, connect
from lab.lab import Lab, LabHost, why_not
from tests import needs

DISK_BYTES = 64 << 20


def require_namespaces() -> None:
    """Skips the test where there can be no lab."""
    needs.require_root("the namespaces of the lab")
    reason = why_not()
    needs.require(reason is None, "the lab", str(reason))


@contextmanager
def running_lab(directory: Path, *hosts: str, **more: Any) -> Iterator[Lab]:
    """A lab for the time of the context; skips the test where there can be none."""
    require_namespaces()
    lab = Lab(directory, hosts, of_this_process=True, **{"disk_bytes": DISK_BYTES, **more})
    try:
        lab.up()
        yield lab
    finally:
        lab.down(purge=True)


def login(host: LabHost, user: str = "root") -> Address:
    return Address(host.name, host.address, host.port, user, host.host_key)


@pytest.fixture(scope="module")
def lab_of_module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with running_lab(tmp_path_factory.mktemp("lab"), "sut", "driver") as lab:
        yield lab


@pytest.fixture
def lab(lab_of_module: Lab) -> Iterator[Lab]:
    """Two hosts, sut and driver, that all tests of a module share; each one finds them on and their links whole."""
    yield lab_of_module
    lab_of_module.up()


@pytest_asyncio.fixture
async def log_in(lab: Lab) -> Any:
    """Opens sessions on hosts of the lab by name; they are closed at the end of the test."""
    async with AsyncExitStack() as stack:

        async def opened(name: str, user: str = "root") -> SshSession:
            host = lab.host(name)
            session = await connect(login(host, user), host.private_key)
            stack.push_async_callback(session.close)
            return session

        yield opened


LogIn = Callable[..., Any]
