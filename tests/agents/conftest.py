from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from agents.remote.ssh import SshSession, connect
from tests.agents.run_lab import lab, lab_hosts
from tests.sshd import SshdHost, sshd_host

__all__ = ["lab", "lab_hosts", "session", "sshd_host"]


@pytest_asyncio.fixture
async def session(sshd_host: SshdHost) -> AsyncIterator[SshSession]:
    """A connection to the test host."""
    opened = await connect(sshd_host.login(), sshd_host.private_key)
    yield opened
    await opened.close()
