"""What load balancers and Prometheus are told."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import OperationalError
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from benchhub import health, prometheus
from experiments.asking.launching.choices import Choice
from experiments.asking.launching.launch import launch_run
from experiments.keeping.operating.bounded_look import BoundedLook
from experiments.models import Canary, Member
from experiments.registry.workers import tallies
from experiments.registry.workers.tallies import Count
from tests.experiments.conftest import admin, make_member, stock, team

__all__ = ["admin", "make_member", "stock", "team"]  # fixtures of the use cases


@pytest.fixture(autouse=True)
def _fresh_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an earlier test saw is not remembered."""
    monkeypatch.setattr(health, "_bounded", BoundedLook(health._look, limit_s=30, kept_s=0))
    monkeypatch.setattr(prometheus, "_bounded", BoundedLook(prometheus._page, limit_s=30, kept_s=0))


def fail() -> Any:
    raise OperationalError("connection refused")


def test_a_process_lives_whatever_becomes_of_the_database(client: Client) -> None:
    assert client.get("/healthz", headers={"host": "10.0.0.7"}).content == b"ok\n"


@pytest.mark.django_db(transaction=True)
def test_a_web_process_is_ready_when_it_can_serve_pages_and_says_what_else_is_wrong(client: Client) -> None:
    answer = client.get("/readyz", headers={"host": "10.0.0.7"})

    assert answer.status_code == 200
    lines = answer.content.decode().splitlines()
    assert lines[0] == "ready"
    assert "degraded: Beat has sent no message through the queue runs yet." in lines


@pytest.mark.django_db(transaction=True)
def test_readiness_as_json(client: Client) -> None:
    answer = client.get("/readyz", headers={"accept": "application/json"})

    assert answer.json()["ready"] is True
    assert len(answer.json()["degraded"]) == 2


def test_without_the_database_no_web_process_is_ready(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "_bounded", BoundedLook(fail, limit_s=30, kept_s=0))

    answer = client.get("/readyz")

    assert (answer.status_code, answer.content) == (
        503,
        b"not ready\nthe database does not answer: connection refused\n",
    )


@pytest.mark.django_db(transaction=True)
def test_a_database_without_this_programs_tables_is_not_ready(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "has_unapplied_migrations", lambda: True)

    answer = client.get("/readyz")

    assert answer.status_code == 503
    assert "run the command migrate" in answer.content.decode()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "token, request_as, status",
    [
        ("", {"REMOTE_ADDR": "127.0.0.1"}, 200),
        ("", {"REMOTE_ADDR": "::1"}, 200),
        ("", {"REMOTE_ADDR": "10.0.0.7"}, 403),
        ("", {"REMOTE_ADDR": ""}, 403),
        ("", {"REMOTE_ADDR": "127.0.0.1", "HTTP_X_FORWARDED_FOR": "127.0.0.1"}, 403),
        ("s3cret", {"REMOTE_ADDR": "127.0.0.1"}, 403),
        ("s3cret", {"REMOTE_ADDR": "10.0.0.7", "HTTP_AUTHORIZATION": "Bearer wrong"}, 403),
        ("s3cret", {"REMOTE_ADDR": "10.0.0.7", "HTTP_AUTHORIZATION": "Bearer s3cret"}, 200),
    ],
)
def test_figures_are_for_this_machine_or_for_the_token(
    client: Client, settings: Any, token: str, request_as: dict[str, str], status: int
) -> None:
    settings.BENCHHUB_METRICS_TOKEN = token

    answer = client.get("/metrics", **request_as)  # type: ignore[arg-type]

    assert answer.status_code == status
    assert (b"benchhub_runs_queued" in answer.content) is (status == 200)


@pytest.mark.django_db(transaction=True)
def test_behind_a_proxy_this_machine_is_everybody(client: Client, settings: Any) -> None:
    settings.ALLAUTH_TRUSTED_PROXY_COUNT = 1

    assert client.get("/metrics", REMOTE_ADDR="127.0.0.1").status_code == 403


@pytest.mark.django_db(transaction=True)
def test_the_figures_tell_what_the_database_knows(client: Client, admin: Member, stock: dict[str, Any]) -> None:
    launch_run(admin, Choice(**stock))
    Canary.objects.create(queue="runs", sent_at="2026-01-01T00:00:00Z", taken_at="2026-01-01T00:00:00Z", delay_s=0.25)
    tallies.count_all(
        [
            Count("runs_finished", "failed", 3),
            *(Count("phase_bucket", f"tune {limit}") for limit in ("5", "15", "60", "300", "900", "3600")),
            Count("phase_count", "tune"),
            Count("phase_sum_s", "tune", 2.5),
        ]
    )

    text = client.get("/metrics").content.decode()

    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert {"benchhub_lease_age_seconds", "benchhub_workers", "benchhub_database_bytes"} <= families.keys()
    assert all(re.fullmatch("benchhub_[a-z_]+", name) for name in families)
    for line in (
        'benchhub_runs_queued{priority="normal",team="perf"} 1.0',
        'benchhub_runs_finished_total{outcome="failed"} 3.0',
        'benchhub_runs_finished_total{outcome="lost"} 0.0',
        'benchhub_hosts{state="ready"} 2.0',
        'benchhub_canary_delay_seconds{queue="runs"} 0.25',
        'benchhub_phase_seconds_bucket{le="1",phase="tune"} 0.0',
        'benchhub_phase_seconds_bucket{le="5",phase="tune"} 1.0',
        'benchhub_phase_seconds_sum{phase="tune"} 2.5',
        "benchhub_adoptions_total 0.0",
    ):
        assert f"\n{line}\n" in text


@pytest.mark.django_db
def test_an_answer_carries_the_id_of_its_request_and_takes_over_a_sane_one(client: Client) -> None:
    given = client.get("/accounts/login/", headers={"x-request-id": "abc-123"})
    forged = client.get("/accounts/login/", headers={"x-request-id": "a b\tc"})

    assert given.headers["X-Request-ID"] == "abc-123"
    assert re.fullmatch("[0-9a-f]{16}", forged.headers["X-Request-ID"])
