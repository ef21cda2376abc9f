"""A run's events as a stream for programs: over a real server, and what it refuses."""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import shlex
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import uvicorn
from asgiref.sync import sync_to_async
from django.core.asgi import get_asgi_application
from django.db import connections
from django.test import AsyncClient

from agents.events import Logged
from experiments.api import streams
from experiments.models import Member, Run, Token
from experiments.registry.logs import live_feed
from experiments.registry.teams.tokens import revoke
from tests.experiments.api.conftest import ApiClient, MakeApi
from tests.frontend.conftest import MakeRun, make_run, write  # noqa: F401 - the fixture

pytestmark = pytest.mark.django_db(transaction=True)
DOCS = (Path(__file__).parents[3] / "docs" / "api.md").read_text()
STREAM = {"Accept": "text/event-stream"}
PATIENCE_S = 300


@pytest.fixture(autouse=True)
async def _close_connections() -> AsyncIterator[None]:
    """The thread behind sync_to_async outlives the test; its connection would keep the test database in use."""
    yield
    await sync_to_async(connections.close_all)()


@asynccontextmanager
async def served() -> AsyncIterator[int]:
    """BenchHub behind uvicorn, on a port of this machine that takes connections from the start."""
    config = uvicorn.Config(
        get_asgi_application(), lifespan="off", log_config=None, timeout_graceful_shutdown=PATIENCE_S
    )
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            yield listening.getsockname()[1]
        finally:
            server.should_exit = True
            await serving


def asked(port: int, path: str, headers: dict[str, str]) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    connection.request("GET", path, headers=headers)
    return connection.getresponse()


def numbers(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"^id: (\d+)$", text, re.MULTILINE)]


def events(text: str) -> list[dict[str, Any]]:
    return [json.loads(data) for data in re.findall(r"^data: (\{.+\})$", text, re.MULTILINE) if data != "{}"]


async def test_the_command_of_the_documentation_follows_a_run(api: ApiClient, make_run: MakeRun, settings: Any) -> None:  # noqa: F811
    settings.ALLOWED_HOSTS = ["127.0.0.1"]
    run = await sync_to_async(make_run)(throughput_rps=1.0)
    line = next(one for one in DOCS.splitlines() if one.startswith("curl -N"))
    async with served() as port:
        words = shlex.split(
            line.replace("$BENCHHUB_TOKEN", str(api.header).removeprefix("Bearer "))
            .replace("$BENCHHUB_URL", f"http://127.0.0.1:{port}")
            .replace("/142/", f"/{run.number}/")
        )
        headers = dict(word.split(": ", 1) for before, word in pairwise(words) if before == "-H")
        address = urlsplit(words[-1])
        answer = await asyncio.to_thread(asked, port, f"{address.path}?{address.query}", headers)
        text = (await asyncio.to_thread(answer.read)).decode()

    assert (answer.status, answer.headers["Content-Type"]) == (200, "text/event-stream")
    assert answer.headers["RateLimit-Policy"].startswith('"default"')
    assert numbers(text) == list(range(1, run.last_seq + 1)) == [event["seq"] for event in events(text)]
    assert text.endswith("event: end\ndata: {}\n\n")
    assert "secret tool output" not in text


async def test_what_happens_while_somebody_follows_is_sent_until_the_run_ends(
    api: ApiClient,
    make_run: MakeRun,  # noqa: F811
    settings: Any,
) -> None:
    settings.ALLOWED_HOSTS = ["127.0.0.1"]
    run = await sync_to_async(make_run)(state="measuring")
    start = run.last_seq
    headers = {"Authorization": str(api.header), "Last-Event-ID": str(start - 1), **STREAM}
    async with served() as port:
        answer = await asyncio.to_thread(asked, port, f"/api/v1/runs/{run.number}/events?after=0", headers)
        text = ""
        while not numbers(text):
            text += (await asyncio.to_thread(answer.readline)).decode()
        await sync_to_async(write)(run, Logged("driver", ("hello",)))
        await Run.objects.filter(pk=run.pk).aupdate(state="finished")
        text += (await asyncio.to_thread(answer.read)).decode()

    assert numbers(text) == [start, start + 1]
    assert events(text)[-1]["lines"] == ["hello"]
    assert text.endswith("event: end\ndata: {}\n\n")
    assert live_feed._feeds == {}
    assert list(streams._open) == []


@pytest.mark.parametrize("accept", ["", "*/*", "application/json", "application/json, text/event-stream;q=0.5"])
def test_who_does_not_rather_have_a_stream_gets_a_page(api: ApiClient, make_run: MakeRun, accept: str) -> None:  # noqa: F811
    run = make_run(state="measuring")
    answer = api.get(f"/runs/{run.number}/events?after=1", headers={"Accept": accept} if accept else {})
    assert [event["seq"] for event in answer.json()["items"]] == list(range(2, run.last_seq + 1))


def test_a_stream_is_refused_to_whom_the_page_is(
    api: ApiClient,
    make_api: MakeApi,
    other_admin: Member,
    admin: Member,
    make_run: MakeRun,  # noqa: F811
) -> None:
    run = make_run(state="measuring")
    path = f"/runs/{run.number}/events"
    revoked = make_api(admin)
    revoke(admin, Token.objects.latest("pk"))
    cases = {
        "no token": (ApiClient(None, api.client), path, {}, 401),
        "revoked": (revoked, path, {}, 401),
        "scope": (make_api(admin, "launch"), path, {}, 403),
        "another team": (make_api(other_admin), path, {}, 404),
        "no number": (api, path, {"Last-Event-ID": "x"}, 422),
        "unknown parameter": (api, f"{path}?since=1", {}, 422),
    }
    for name, (client, address, headers, status) in cases.items():
        answer = client.get(address, headers={**STREAM, **headers})
        assert (answer.status_code, answer["Content-Type"]) == (status, "application/problem+json"), name
    type(admin.team).objects.filter(pk=admin.team_id).update(requires_second_factor=True)
    assert api.get(path, headers=STREAM).status_code == 403


async def opened(api: ApiClient, run: Run) -> Any:
    headers = {"Authorization": str(api.header), **STREAM}
    return await AsyncClient().get(f"/api/v1/runs/{run.number}/events", headers=headers)


async def test_a_token_has_so_many_streams_open_and_no_more(
    api: ApiClient,
    make_api: MakeApi,
    admin: Member,
    make_run: MakeRun,  # noqa: F811
    settings: Any,
) -> None:
    settings.BENCHHUB_API_STREAMS = 1
    run = await sync_to_async(make_run)(state="measuring")
    other = await sync_to_async(make_api)(admin)

    first = aiter(await opened(api, run))
    assert b"retry" in await anext(first)
    refused = await opened(api, run)
    assert (refused.status_code, refused["Content-Type"]) == (429, "application/problem+json")
    assert "1 event streams open" in refused.json()["detail"]
    others = aiter(await opened(other, run))
    assert b"retry" in await anext(others)

    await first.aclose()
    again = aiter(await opened(api, run))
    assert b"retry" in await anext(again)
    for parts in (again, others):
        await parts.aclose()
    assert list(streams._open) == []


async def test_a_stream_ends_when_its_token_is_revoked(
    api: ApiClient,
    admin: Member,
    make_run: MakeRun,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(streams, "RECHECK_S", 0.0)
    monkeypatch.setattr(live_feed, "HEARTBEAT_S", 0.01)
    run = await sync_to_async(make_run)(state="measuring")
    parts = aiter(await opened(api, run))
    assert b"retry" in await anext(parts)
    assert b"id: 1\n" in await anext(parts)

    await sync_to_async(revoke)(admin, await Token.objects.alatest("pk"))

    async with asyncio.timeout(PATIENCE_S):
        left = [part async for part in parts]
    assert left == []
    assert (await opened(api, run)).status_code == 401
    assert live_feed._feeds == {}
