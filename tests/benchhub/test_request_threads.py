"""The web process's own handler: ordinary requests in one thread, asynchronous views and probes on the event loop."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connections

from benchhub import request_threads
from benchhub.request_threads import RequestHandler
from experiments.models import Member, Run
from experiments.registry.teams.tokens import issue
from tests.experiments.conftest import admin, make_member, team  # noqa: F401 - fixtures


class Asked:
    """One request to the handler, with all that it sends."""

    def __init__(self, path: str, token: str = "", *, body: bytes = b"", leaves_after: int | None = None) -> None:
        path, _, query = path.partition("?")
        self.scope = {
            "type": "http",
            "method": "POST" if body else "GET",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(b"host", b"localhost"), (b"authorization", f"Bearer {token}".encode())],
            "root_path": "",
            "scheme": "http",
            "http_version": "1.1",
            "server": ("127.0.0.1", 80),
            "client": ("127.0.0.1", 1),
        }
        self.sent: list[Any] = []
        self.leaves_after = leaves_after
        self.gone = asyncio.Event()
        self._incoming = [{"type": "http.request", "body": body}]

    async def receive(self) -> Any:
        if self._incoming:
            return self._incoming.pop()
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        self.sent.append(message)
        if len(self.sent) == self.leaves_after:
            self.gone.set()
            await asyncio.sleep(0)

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"])

    @property
    def header(self) -> dict[str, str]:
        return {name.decode().lower(): value.decode() for name, value in self.sent[0]["headers"]}

    @property
    def parts(self) -> list[bytes]:
        return [message["body"] for message in self.sent[1:]]


async def answered(asked: Asked) -> Asked:
    handler = RequestHandler()
    await handler(asked.scope, asked.receive, asked.send)
    handler._threads.shutdown()
    await sync_to_async(connections.close_all)()
    return asked


@pytest.fixture
def token(admin: Member) -> str:  # noqa: F811
    return issue(admin, name="ci", scopes=["read"])[1]


@pytest.mark.django_db(transaction=True)
async def test_an_answer_that_is_no_stream_is_one_message_with_all_headers(token: str) -> None:
    found = await answered(Asked("/api/v1/me", token))
    assert (found.status, len(found.parts)) == (200, 1)
    assert found.header["content-length"] == str(len(found.parts[0]))
    assert {"ratelimit", "x-request-id", "content-security-policy"} <= found.header.keys()
    assert (await answered(Asked("/api/v1/me"))).status == 401
    assert (await answered(Asked("/nowhere/"))).status == 404


@pytest.mark.django_db(transaction=True)
async def test_a_stream_goes_out_in_parts_and_ends_with_its_reader(
    token: str,
    admin: Member,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(request_threads, "PART_BYTES", 1000)
    runs = [Run(team_id=admin.team_id, number=number) for number in range(1, 1201)]
    await sync_to_async(Run.objects.bulk_create)(runs)
    path = "/api/v1/runs/csv?columns=number"
    whole = await answered(Asked(path, token))
    assert b"".join(whole.parts).decode().split() == ["number", *(str(number) for number in range(1200, 0, -1))]
    assert len(whole.parts) > 5
    assert whole.sent[-1] == {"type": "http.response.body", "body": b""}
    left = await answered(Asked(path, token, leaves_after=2))
    assert len(left.parts) < len(whole.parts)


@pytest.mark.django_db(transaction=True)
async def test_who_reads_a_stream_slowly_holds_up_no_thread(
    token: str,
    admin: Member,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(request_threads, "THREADS", 1)
    await sync_to_async(Run.objects.create)(team_id=admin.team_id, number=1)
    handler = RequestHandler()
    slow, other = Asked("/api/v1/runs/csv?columns=number", token), Asked("/api/v1/me", token)
    reads = asyncio.Event()

    async def send_slowly(message: Any) -> None:
        await reads.wait()
        await slow.send(message)

    stream = asyncio.create_task(handler(slow.scope, slow.receive, send_slowly))
    await asyncio.sleep(0)  # it has the thread first
    await handler(other.scope, other.receive, other.send)
    assert (other.status, slow.sent) == (200, [])
    reads.set()
    await stream
    assert b"".join(slow.parts) == b"number\r\n1\r\n"
    assert handler._streams.acquire(blocking=False)  # the stream gave its place back
    for _ in range(request_threads.STREAMS - 1):
        handler._streams.acquire()
    one_more = Asked("/api/v1/runs/csv", token)
    await handler(one_more.scope, one_more.receive, one_more.send)
    assert (one_more.status, one_more.header["retry-after"]) == (503, "10")
    handler._threads.shutdown()
    await sync_to_async(connections.close_all)()


async def test_a_request_that_ends_before_its_body_is_answered_by_nobody() -> None:
    asked = Asked("/api/v1/runs", body=b"{")
    asked._incoming = [{"type": "http.disconnect"}]
    assert (await answered(asked)).sent == []


@pytest.mark.parametrize(
    "path, needs",
    [
        ("/healthz", True),
        ("/readyz", True),
        ("/metrics", True),
        ("/api/v1/runs/7/events", True),
        ("/api/v1/runs/7/verdict", True),
        ("/t/perf/runs/7/events", True),
        ("/t/perf/runs/7/", False),
        ("/api/v1/runs", False),
        ("/static/css/base.css", False),
        ("/" + "x" * 5000, False),
    ],
)
def test_only_what_waits_and_probes_keep_out_of_the_pool(path: str, needs: bool) -> None:
    assert request_threads._needs_event_loop(path) is needs
