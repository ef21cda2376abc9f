"""A run's events as a stream."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connections
from django.test import AsyncClient, Client

from agents.events import Logged
from experiments.models import Member, Run
from experiments.registry.logs import live_feed
from tests.frontend.conftest import MakeRun, write

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
async def _close_connections() -> AsyncIterator[None]:
    """The thread behind sync_to_async outlives the test; its connection would keep the test database in use."""
    yield
    await sync_to_async(connections.close_all)()


def parsed(text: str) -> list[dict[str, object]]:
    return [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line.startswith('data: {"')]


async def take(stream: AsyncGenerator[str, None], enough: Callable[[str], bool]) -> str:
    text = ""
    async with asyncio.timeout(120):
        async for part in stream:
            text += part
            if enough(text):
                break
    await stream.aclose()
    return text


async def finish(run: Run) -> None:
    await Run.objects.filter(pk=run.pk).aupdate(state="finished")


async def test_a_finished_run_is_replayed_and_ended(admin: Member, make_run: MakeRun) -> None:
    run = await sync_to_async(make_run)(throughput_rps=1.0)
    client = AsyncClient()
    await client.aforce_login(admin.user)

    answer: Any = await client.get(f"/t/perf/runs/{run.number}/events", headers={"Last-Event-ID": "2"})
    text = "".join([part.decode() async for part in answer.streaming_content])

    assert answer.headers["Content-Type"] == "text/event-stream"
    assert [event["seq"] for event in parsed(text)] == list(range(3, run.last_seq + 1))
    assert text.endswith("event: end\ndata: {}\n\n")
    assert "secret tool output" not in text


async def test_a_stream_goes_on_where_the_page_was_and_misses_and_repeats_nothing(make_run: MakeRun) -> None:
    run = await sync_to_async(make_run)(state="measuring")
    start = run.last_seq
    first = live_feed.stream(run.pk, start - 2, start, finished=False)
    before = await take(first, lambda text: f"id: {start}\n" in text)

    await sync_to_async(write)(run, *(Logged("driver", (f"line {n}",)) for n in range(1200)))
    await finish(run)
    second = live_feed.stream(run.pk, start, run.last_seq, finished=False)
    after = await take(second, lambda text: "event: end" in text)

    numbers = [event["seq"] for event in parsed(before) + parsed(after)]
    assert numbers == list(range(start - 1, run.last_seq + 1))


async def test_all_pages_of_a_run_share_one_poller(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    run = await sync_to_async(make_run)(state="measuring")
    reads = 0
    read = live_feed.read_events

    def counted(run_id: int, after: int) -> live_feed.Batch:
        nonlocal reads
        reads += 1
        return read(run_id, after)

    monkeypatch.setattr(live_feed, "read_events", counted)
    streams = [live_feed.stream(run.pk, run.last_seq, run.last_seq, finished=False) for _ in range(20)]
    followers = [asyncio.create_task(take(stream, lambda text: "event: end" in text)) for stream in streams]
    await sync_to_async(write)(run, Logged("driver", ("hello",)))
    await finish(run)
    texts = await asyncio.gather(*followers)

    assert all([event["lines"] for event in parsed(text)] == [["hello"]] for text in texts)
    assert reads < 20
    assert live_feed._feeds == {}


async def test_a_stream_holds_no_database_connection(admin: Member, make_run: MakeRun) -> None:
    run = await sync_to_async(make_run)(state="measuring")
    client = AsyncClient()
    await client.aforce_login(admin.user)

    answer: Any = await client.get(f"/t/perf/runs/{run.number}/events?after=0")
    parts = answer.streaming_content.__aiter__()
    assert b"retry" in await anext(parts)

    assert await sync_to_async(lambda: connections["default"].connection)() is None
    await parts.aclose()


async def test_a_quiet_stream_is_kept_alive(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_feed, "HEARTBEAT_S", 0.01)
    run = await sync_to_async(make_run)(state="measuring")
    stream = live_feed.stream(run.pk, run.last_seq, run.last_seq, finished=False)

    text = await take(stream, lambda text: ": still here" in text)
    assert ": still here\n\n" in text
    assert live_feed._feeds == {}


def test_polling_gives_the_same_events(browser: Client, make_run: MakeRun) -> None:
    run = make_run(state="measuring")

    page = browser.get(f"/t/perf/runs/{run.number}/events/page?after=1").json()

    assert [event["seq"] for event in page["events"]] == list(range(2, run.last_seq + 1))
    assert page["finished"] is False
