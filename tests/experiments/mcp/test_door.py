"""Who is let in at `/mcp`, and how it is spoken there."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as of_django
from django.test import Client as Browser
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import methods
from pytest_django.live_server_helper import LiveServer

from experiments.mcp.tools import LAUNCHING, READING
from experiments.models import Member, Role
from experiments.registry.teams.tokens import issue
from tests.experiments.conftest import MakeMember
from tests.experiments.mcp.conftest import VERSION, Caller, MakeCaller, Talk

NAMES = [tool.name for tool in READING]
CLIENT = Path(__file__).parents[3] / "clients/python"
LIST: dict[str, Any] = {"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": {}}


@pytest.mark.parametrize("mode", ["auto", "legacy", "2026-07-28"])
def test_the_client_of_the_sdk_finds_every_tool_and_calls_one(talk: Talk, mode: str, stock: dict[str, Any]) -> None:
    async def conversation(client: Client) -> Any:
        listed = await client.list_tools()
        return [tool.name for tool in listed.tools], await client.call_tool("list_hosts", {})

    names, answer = talk(conversation, mode)
    assert names == NAMES
    assert "sut-1" in answer.content[0].text


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_command_of_the_client_does_the_same_over_its_standard_streams(
    transactional_db: None, live_server: LiveServer, admin: Member, stock: dict[str, Any], mode: str
) -> None:
    _, token = issue(admin, name="assistant", scopes=["read"])
    env = {"BENCHHUB_URL": live_server.url, "BENCHHUB_TOKEN": token, "PATH": os.environ["PATH"]}
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "benchhub_client", "mcp"], env=env, cwd=str(CLIENT)
    )

    async def conversation() -> Any:
        async with Client(stdio_client(command), mode=mode) as client:
            listed = await client.list_tools()
            wrong = await client.call_tool("get_run", {"number": 0})
            return [tool.name for tool in listed.tools], await client.call_tool("list_hosts", {}), wrong

    names, answer, wrong = asyncio.run(conversation())
    assert names == NAMES
    assert "sut-1" in answer.content[0].text
    assert (wrong.is_error, "number" in wrong.content[0].text) == (True, True)


def test_without_a_live_token_of_the_scope_nothing_is_said(
    admin: Member, make_caller: MakeCaller, make_member: MakeMember
) -> None:
    browser = Browser()
    browser.force_login(admin.user)
    for header in (None, "Bearer ", "Bearer bh_0_0", "Basic YTpi"):
        answer = Caller(header).post(LIST)
        assert (answer.status_code, answer["Content-Type"]) == (401, "application/problem+json")
        assert answer["WWW-Authenticate"].startswith("Bearer")
    assert browser.post("/mcp", LIST, content_type="application/json").status_code == 401
    refused = make_caller(admin, "launch", "write", "admin").post(LIST)
    assert (refused.status_code, "scope read" in refused.json()["detail"]) == (403, True)
    gone = make_caller(make_member(admin.team, Role.VIEWER, "gone"))
    Member.objects.get(user__username="gone").delete()
    assert gone.post(LIST).status_code == 401


def test_every_message_is_a_post_and_counts_as_a_request(caller: Caller) -> None:
    for method in ("GET", "DELETE", "PUT", "OPTIONS"):
        answer = Browser().generic(method, "/mcp", headers={"Authorization": str(caller.header)})
        assert (answer.status_code, answer["Allow"]) == (405, "POST")
    left = [int(caller.post(LIST)["RateLimit"].split("r=")[1].split(";")[0]) for _ in range(2)]
    assert left[0] - left[1] == 1


def test_a_budget_that_is_spent_ends_the_calls_of_tools_as_well(caller: Caller, settings: Any) -> None:
    settings.BENCHHUB_API_PER_MINUTE = 2
    text, is_error = caller.said("get_queue")
    assert (is_error, '"waiting"' in text) == (False, True)
    assert caller.post(LIST).status_code == 429


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Origin": "http://testserver"}, 200),
        ({"Origin": of_django.BENCHHUB_URL}, 200),
        ({"Origin": "https://evil.example.com"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://testserver.evil.example.com"}, 403),
        ({"Host": "evil.example.com"}, 400),
        ({"Content-Type": "text/plain"}, 400),
        ({"Accept": "text/html"}, 406),
        ({"MCP-Protocol-Version": "1999-01-01"}, 400),
    ],
)
def test_only_this_installations_own_names_and_pages_may_ask(
    caller: Caller, settings: Any, headers: dict[str, str], status: int
) -> None:
    settings.ALLOWED_HOSTS = ["testserver"]
    for version in (VERSION, "2026-07-28"):
        if version != VERSION and status == 200:
            continue  # that version says more in the message itself, as the clients above do
        answer = caller.post(LIST, **{"MCP-Protocol-Version": version, **headers})
        assert answer.status_code == status, answer.content


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", -32700),
        (b"[]", -32602),
        (b'"text"', -32602),
        (b"\xff", -32700),
        ({"jsonrpc": "2.0", "id": 1, "method": "no/such"}, -32601),
        ({"jsonrpc": "2.0", "id": 1, "method": "resources/list"}, -32601),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "no_such"}}, -32602),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "plan_run"}}, -32602),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"arguments": {}}}, -32602),
    ],
)
def test_what_is_no_message_is_refused_in_the_words_of_the_protocol(caller: Caller, body: Any, code: int) -> None:
    answer = caller.post(body)
    assert answer.status_code < 500
    assert answer.json()["error"]["code"] == code, answer.content


def test_a_body_that_is_too_large_is_refused_before_it_is_read(caller: Caller) -> None:
    for size in (5 * 2**20, 11 * 2**20):
        assert caller.post(b" " * size).status_code == 413


def test_every_answer_is_what_the_protocol_says(caller: Caller) -> None:
    hello = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    for method, params in (
        ("initialize", hello),
        ("ping", {}),
        ("tools/list", {}),
        ("tools/call", {"name": "get_queue", "arguments": {}}),
        ("tools/call", {"name": "get_run", "arguments": {"number": 1}}),
    ):
        methods.validate_server_result(method, VERSION, caller.ask(method, **params)["result"])
    assert caller.post({"jsonrpc": "2.0", "method": "notifications/initialized"}).status_code == 202


def test_tools_say_what_they_do_and_what_each_argument_is(caller: Caller) -> None:
    tools = caller.tools()
    assert [*tools] == NAMES
    assert not {tool.name for tool in LAUNCHING} & {*tools}
    for tool in tools.values():
        assert tool["annotations"]["readOnlyHint"] is True
        assert tool["inputSchema"]["additionalProperties"] is False
        assert 60 < len(tool["description"]) < 400
    assert len(str(tools)) < 20_000, "a client shows all of this to its model"
