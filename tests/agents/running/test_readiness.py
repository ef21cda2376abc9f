from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any, cast

import pytest

from agents.base.command import Command, CommandResult
from agents.base.errors import NotReady
from agents.base.session import Session
from agents.remote.jobs import Job, JobStatus
from agents.running.readiness import wait_until_ready
from agents.servers.base.server import Readiness


class Driver:
    """Gives these answers to the probes, the last one over and over; each takes so long that time is up."""

    host = "driver"

    def __init__(self, *statuses: str) -> None:
        self.statuses = itertools.chain(statuses, itertools.repeat(statuses[-1]))
        self.now_s = 0.0

    async def run(self, _command: Command, **_options: Any) -> CommandResult:
        self.now_s += 1000.0
        return CommandResult(0, f"\n{next(self.statuses)}".encode())


class Server:
    async def status(self) -> JobStatus:
        return JobStatus("running")


async def wait(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents.running.readiness.time", SimpleNamespace(monotonic=lambda: driver.now_s))

    async def read_log() -> str:
        return ""

    await wait_until_ready(
        Readiness(timeout_s=60),
        "http://sut/",
        driver=cast(Session, driver),
        server=cast(Job, Server()),
        log_file="server.log",
        read_log=read_log,
        ask=read_log,
        check=lambda: None,
    )


async def test_a_server_that_became_ready_while_this_process_stood_still_is_ready(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await wait(Driver("000", "200"), monkeypatch)


async def test_a_server_that_is_not_ready_in_time_is_told_with_its_last_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NotReady, match=r"not ready within 60 s: http://sut/ answered 503 instead of 200"):
        await wait(Driver("000", "503"), monkeypatch)
