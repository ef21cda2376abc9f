"""Who is let in at `/mcp`, and how it is spoken there."""

from __future__ import annotations

from typing import Any

import pytest
from mcp.client.client import Client

from experiments.mcp.tools import READING
from tests.experiments.mcp.conftest import Talk

NAMES = [tool.name for tool in READING]


@pytest.mark.parametrize("mode", ["auto", "legacy", "2026-07-28"])
def test_the_clients_of_the_sdk_find_every_tool_and_call_one(talk: Talk, mode: str, stock: dict[str, Any]) -> None:
    async def conversation(client: Client) -> Any:
        listed = await client.list_tools()
        return [tool.name for tool in listed.tools], await client.call_tool("list_hosts", {})

    names, answer = talk(conversation, mode)  # type: ignore[call-arg]
    assert names == NAMES
    assert "sut-1" in answer.content[0].text
