"""A run that is tried again: its newest try decides, is waited for, watched and cancelled."""

from __future__ import annotations

import io
from typing import Any

import pytest
from pytest_django.live_server_helper import LiveServer

from clients.python.benchhub_client import Hub, Trouble, watching
from experiments.models import Member, Run
from experiments.registry.teams.tokens import issue
from tests.experiments.api.ci_client import NAMES as WORDS
from tests.experiments.api.ci_client import Ci
from tests.experiments.api.conftest import ApiClient
from tests.experiments.api.test_auth import NAMES
from tests.experiments.asking.test_retries import fail
from tests.experiments.finished import finish_next

SETUP: dict[str, Any] = {**NAMES}


@pytest.fixture
def hub(transactional_db: None, live_server: LiveServer, admin: Member, stock: dict[str, Any]) -> Hub:
    return Hub(live_server.url, issue(admin, name="client", scopes=["read", "launch"])[1], patience_s=0, quiet=True)


def verdict_of(api: ApiClient, number: int) -> dict[str, Any]:
    found: dict[str, Any] = api.get(f"/runs/{number}/verdict?wait=0").json()
    return found


def test_the_newest_try_decides_and_is_not_finished_while_it_waits(api: ApiClient, stock: dict[str, Any]) -> None:
    api.post("/runs", {**NAMES, "retries": 2})
    fail("host")
    waiting = verdict_of(api, 1)
    assert (waiting["outcome"], waiting["finished"], waiting["decided_by"]) == ("inconclusive", False, 2)
    assert waiting["reasons"] == [
        "Run #1 ended as failed and was tried again: run #2 decides.",
        "The run is queued.",
    ]
    fail("benchhub")
    assert (verdict_of(api, 1)["finished"], verdict_of(api, 1)["decided_by"]) == (False, 3)
    finish_next()
    for asked in (1, 2, 3):
        found = verdict_of(api, asked)
        assert (found["outcome"], found["finished"], found["decided_by"]) == ("pass", True, 3)
        assert found["numbers"]
        assert found["url"].endswith("/runs/3/")
        assert "[Run \\#3]" in found["markdown"]


def test_a_try_without_another_decides_itself(api: ApiClient, stock: dict[str, Any]) -> None:
    api.post("/runs", {**NAMES, "retries": 1})
    fail("host")
    api.post("/runs/2/cancel")
    found = verdict_of(api, 1)
    assert (found["outcome"], found["finished"], found["decided_by"]) == ("error", True, 2)
    api.post("/runs", NAMES)
    fail("host")
    assert (verdict_of(api, 3)["outcome"], verdict_of(api, 3)["decided_by"]) == ("error", 3)


def test_the_client_of_python_waits_for_the_newest_try_and_gives_it_back(hub: Hub) -> None:
    run = hub.launch(**SETUP, retries=2)
    fail("host")
    with pytest.raises(Trouble, match="run #1 is not finished"):
        run.wait(timeout_s=0)
    finish_next()
    done = run.wait()
    assert (done.number, done.verdict().outcome, run.verdict().decided_by) == (2, "pass", 2)
    assert done.metrics["throughput_rps"] > 0


def test_watching_goes_on_with_the_next_try(hub: Hub) -> None:
    run = hub.launch(**SETUP, retries=1)
    ends = iter((lambda: fail("host"), finish_next))
    told = io.StringIO()

    def end_it(_seconds: float) -> None:
        next(ends)()

    assert watching.follow(run, told, end_it).number == 2
    assert told.getvalue().splitlines() == [
        "#1 queued", "#1 finished", "#1 failed: tried again as #2", "#2 queued", "#2 finished",
    ]  # fmt: skip


def test_a_job_of_ci_is_judged_by_the_newest_try_and_cancels_it(ci: Ci) -> None:
    assert ci("trigger", *WORDS, "--retries", "2").stdout == "run:1\n"
    fail("host")
    waiting = ci("wait", "run:1", "--timeout", "0")
    assert (waiting.returncode, "run:1 is not finished" in waiting.stderr) == (3, True)
    fail("host")
    assert ci("cancel", "run:1").stdout == "run:1\n"
    assert Run.objects.get(number=3).outcome == "cancelled"
    assert ci("trigger", *WORDS, "--retries", "1", "--idempotency-key", "b").stdout == "run:4\n"
    fail("host")
    finish_next()
    judged = ci("gate", "run:4")
    assert (judged.returncode, "run #5 decides" in judged.stderr) == (0, True), judged.stderr
