"""A caller of `/mcp` that speaks the protocol by hand, and the SDK's own client against a real server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from django.test import Client as Browser
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from pytest_django.live_server_helper import LiveServer

from experiments.models import Member
from experiments.registry.teams.tokens import issue
from tests.experiments.conftest import add_run, admin, make_member, other_admin, stock, team  # noqa: F401 - fixtures

if TYPE_CHECKING:
    from django.test.client import _MonkeyPatchedWSGIResponse as Answer

VERSION = "2025-11-25"


@dataclass
class Caller:
    """Sends single messages to `/mcp`; `header` None sends no token."""

    header: str | None

    def post(self, body: Any, **headers: str) -> Answer:
        sent = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": VERSION, **headers}
        if self.header is not None:
            sent["Authorization"] = self.header
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return Browser().generic("POST", "/mcp", data, content_type="application/json", headers=sent)

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """The whole message that comes back."""
        answer = self.post({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        found: dict[str, Any] = json.loads(answer.content)
        return found

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """What a tool says when it does not refuse."""
        text, is_error = self.said(tool, **arguments)
        assert not is_error, text
        found: dict[str, Any] = json.loads(text)
        return found

    def said(self, tool: str, **arguments: Any) -> tuple[str, bool]:
        """The text of a tool's answer, and whether it is an error."""
        result = self.ask("tools/call", name=tool, arguments=arguments)["result"]
        (content,) = result["content"]
        return content["text"], result["isError"]

    def tools(self) -> dict[str, dict[str, Any]]:
        return {tool["name"]: tool for tool in self.ask("tools/list")["result"]["tools"]}


MakeCaller = Callable[..., Caller]
Talk = Callable[..., Any]


@pytest.fixture
def make_caller() -> MakeCaller:
    def make(member: Member, *scopes: str) -> Caller:
        return Caller(f"Bearer {issue(member, name='assistant', scopes=scopes or ('read',))[1]}")

    return make


@pytest.fixture
def caller(admin: Member, make_caller: MakeCaller) -> Caller:  # noqa: F811 - the fixture
    return make_caller(admin)


@pytest.fixture
def talk(transactional_db: None, live_server: LiveServer, admin: Member) -> Talk:  # noqa: F811 - the fixture
    """Runs a conversation of the SDK's client with a real server; `mode` is the client's."""
    _, token = issue(admin, name="assistant", scopes=["read"])

    def run(conversation: Callable[[Client], Awaitable[Any]], mode: str = "auto") -> Any:
        async def whole() -> Any:
            async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}) as http:
                transport = streamable_http_client(f"{live_server.url}/mcp", http_client=http)
                async with Client(transport, mode=mode) as client:
                    return await conversation(client)

        return asyncio.run(whole())

    return run
