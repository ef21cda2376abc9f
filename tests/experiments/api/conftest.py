"""A client of the REST API that speaks as a token's owner."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client
from pytest_django.live_server_helper import LiveServer

from clients.python.benchhub_client import Hub
from experiments.api.cli import archive
from experiments.models import Member
from experiments.registry.teams.tokens import SCOPES, issue
from tests.experiments.api.ci_client import Ci, run_ci
from tests.experiments.conftest import admin, make_member, other_admin, stock, team  # noqa: F401 - fixtures

if TYPE_CHECKING:
    from django.test.client import _MonkeyPatchedWSGIResponse as Answer


@dataclass
class ApiClient:
    """Sends JSON to `/api/v1` with a token; `header` None sends none."""

    header: str | None
    client: Client

    def send(self, method: str, path: str, body: Any = None, **more: Any) -> Answer:
        headers = dict(more.pop("headers", {}))
        if self.header is not None:
            headers["Authorization"] = self.header
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        content_type = more.pop("content_type", "application/json")
        return self.client.generic(method, f"/api/v1{path}", data, content_type=content_type, headers=headers, **more)

    def get(self, path: str, **more: Any) -> Answer:
        return self.send("GET", path, **more)

    def post(self, path: str, body: Any = None, **more: Any) -> Answer:
        return self.send("POST", path, body, **more)

    def put(self, path: str, body: Any = None, **more: Any) -> Answer:
        return self.send("PUT", path, body, **more)


MakeApi = Callable[..., ApiClient]


@pytest.fixture
def make_api() -> MakeApi:
    def make(member: Member, *scopes: str) -> ApiClient:
        given = scopes or [scope for scope, role in SCOPES.items() if _covers(member, role)]
        _, text = issue(member, name="test", scopes=given)
        return ApiClient(f"Bearer {text}", Client())

    return make


@pytest.fixture
def api(admin: Member, make_api: MakeApi) -> ApiClient:  # noqa: F811 - the fixture
    return make_api(admin)


def _covers(member: Member, role: Any) -> bool:
    from experiments.models import Role

    return Role(member.role).covers(role)


@pytest.fixture(scope="session")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """benchhub-ci as the installation serves it."""
    path = tmp_path_factory.mktemp("client") / "benchhub-ci"
    path.write_bytes(archive())
    return path


@pytest.fixture
def token(admin: Member) -> str:  # noqa: F811 - the fixture
    """That of a program: it reads and launches."""
    return issue(admin, name="client", scopes=["read", "launch"])[1]


@pytest.fixture
def hub(
    transactional_db: None,
    live_server: LiveServer,
    token: str,
    stock: dict[str, Any],  # noqa: F811 - the fixture
) -> Hub:
    """The client of Python at the running server, where nobody executes runs; it tries nothing again."""
    return Hub(live_server.url, token, patience_s=0, quiet=True)


@pytest.fixture
def ci(
    transactional_db: None,
    live_server: LiveServer,
    admin: Member,  # noqa: F811 - the fixture
    stock: dict[str, Any],  # noqa: F811 - the fixture
    script: Path,
) -> Ci:
    _, text = issue(admin, name="ci", scopes=["read", "launch"])
    return lambda *arguments: run_ci(script, live_server.url, text, *arguments)
