"""Two who change different fields of one thing at the same moment: both changes stay."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client

from tests.experiments.api.conftest import ApiClient
from tests.experiments.api.test_auth import BODIES, NAMES

BLOCKED_BY_ME = "SELECT count(*) FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))"


@pytest.mark.parametrize(
    ("kind", "body", "one", "other"),
    [
        (
            "schedules",
            {"name": "n", "run": 1, "cron": "0 0 * * *"},
            {"labels": {"commit": "4f2c"}},
            {"cron": "30 2 * * *", "priority": "low"},
        ),
        ("webhooks", BODIES["create_webhook"], {"events": ["alert.raised"]}, {"name": "other", "is_active": False}),
        ("alert-rules", BODIES["create_alert_rule"], {"labels": {"a": "b"}}, {"name": "other", "is_active": False}),
        (
            "prometheus-sources",
            BODIES["create_prometheus_source"],
            {"queries": [{"channel": "y", "query": "up"}]},
            {"name": "other", "is_active": False},
        ),
    ],
)
def test_changes_of_different_fields_at_the_same_moment_are_both_kept(
    transactional_db: None,
    api: ApiClient,
    stock: dict[str, Any],
    kind: str,
    body: dict[str, Any],
    one: dict[str, Any],
    other: dict[str, Any],
) -> None:
    assert api.post("/runs", NAMES).status_code == 202
    here = f"/{kind}/{api.post(f'/{kind}', body).json()['id']}"
    answers = []

    def change() -> None:
        try:
            answers.append(ApiClient(api.header, Client()).send("PATCH", here, other))
        finally:
            connection.close()

    second = threading.Thread(target=change)
    with transaction.atomic():
        first = api.send("PATCH", here, one)
        second.start()
        with connection.cursor() as cursor:
            while second.is_alive():  # until it waits for the first one, which ends with this block
                cursor.execute(BLOCKED_BY_ME)
                if cursor.fetchone() != (0,):
                    break
    second.join()
    assert [answer.status_code for answer in (first, *answers)] == [200, 200], answers
    said = api.get(here).json()
    assert {name: said[name] for name in one} == {name: first.json()[name] for name in one}
    assert {name: said[name] for name in other} == other
