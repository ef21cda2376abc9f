"""A long CSV: made first, then sent in parts, and only so many at once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connection, connections
from django.test import AsyncClient, Client

from experiments.models import Member, Run
from experiments.telling.run_list import csv_response
from tests.experiments.api.conftest import ApiClient

CSV = "/api/v1/runs/csv?columns=number"


@pytest.fixture
async def _close_connections() -> AsyncIterator[None]:
    """The thread behind sync_to_async outlives the test; its connection would keep the test database in use."""
    yield
    await sync_to_async(connections.close_all)()


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("_close_connections")
async def test_it_goes_out_in_parts_and_its_reader_keeps_no_connection_to_the_database(
    api: ApiClient, admin: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_response, "PART_BYTES", 1000)
    runs = [Run(team_id=admin.team_id, number=number) for number in range(1, 1201)]
    await sync_to_async(Run.objects.bulk_create)(runs)

    answer: Any = await AsyncClient().get(CSV, headers={"Authorization": str(api.header)})
    parts = aiter(answer)
    first = await anext(parts)
    kept = await sync_to_async(lambda: connection.connection)()
    rest = [part async for part in parts]

    assert kept is None
    assert len(rest) > 5
    assert b"".join([first, *rest]).decode().split() == ["number", *(str(number) for number in range(1200, 0, -1))]


@pytest.mark.django_db
def test_one_more_than_may_be_made_at_once_is_told_to_ask_again_by_api_and_page(api: ApiClient, admin: Member) -> None:
    browser = Client()
    browser.force_login(admin.user)
    for _ in range(csv_response.AT_ONCE):
        csv_response._places.acquire()
    try:
        told = api.get("/runs/csv")
        page = browser.get("/t/perf/settings/audit/csv")
    finally:
        csv_response._places.release(csv_response.AT_ONCE)

    assert (told.status_code, told["Retry-After"], told["Content-Type"]) == (503, "10", "application/problem+json")
    assert (page.status_code, page["Retry-After"], page["Content-Type"]) == (503, "10", "text/plain")
    assert (
        told.json()["detail"]
        == page.content.decode()
        == "4 long downloads are being made already; ask again in a few seconds."
    )
    assert api.get("/runs/csv").status_code == 200
