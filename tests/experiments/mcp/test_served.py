"""The tools as they are served: behind uvicorn, many calls at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from asgiref.sync import sync_to_async
from django.db import connections
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from experiments.asking.launching.choices import Choice
from experiments.asking.launching.launch import launch_run
from experiments.models import Member
from experiments.registry.teams.tokens import issue
from tests.experiments.api.test_streams import served

pytestmark = pytest.mark.django_db(transaction=True)
AT_A_TIME = 8


@pytest.fixture(autouse=True)
async def _close_connections() -> AsyncIterator[None]:
    """The thread behind sync_to_async outlives the test; its connection would keep the test database in use."""
    yield
    await sync_to_async(connections.close_all)()


async def test_many_calls_at_a_time_each_get_their_own_answer(
    admin: Member, stock: dict[str, Any], settings: Any
) -> None:
    settings.ALLOWED_HOSTS = ["127.0.0.1"]
    for _ in range(AT_A_TIME):
        await sync_to_async(launch_run)(admin, Choice(**stock))
    _, token = await sync_to_async(issue)(admin, name="assistant", scopes=["read"])
    async with served() as port, httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=300) as http:
        transport = streamable_http_client(f"http://127.0.0.1:{port}/mcp", http_client=http)
        async with Client(transport) as client:
            numbers = range(1, AT_A_TIME + 1)
            details = [client.call_tool("get_run", {"number": number}) for number in numbers]
            verdicts = [client.call_tool("get_verdict", {"run": number}) for number in numbers]
            said: list[Any] = [one.content[0] for one in await asyncio.gather(*details, *verdicts)]
    for place, content in enumerate(said):
        assert f'"#{place % AT_A_TIME + 1}":"' in content.text
    assert all('"outcome":"inconclusive"' in content.text for content in said[AT_A_TIME:])
