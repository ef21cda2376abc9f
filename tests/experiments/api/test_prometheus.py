"""Prometheus sources over the API, from making one to what a run has of it, with a real Prometheus."""

from __future__ import annotations

import time
from typing import Any

import pytest

from experiments.models import Member
from tests.experiments.api.conftest import ApiClient, MakeApi
from tests.experiments.asking.test_prometheus_reading import (  # noqa: F401 - fixtures
    loopback,
    measured_run,
    read_all,
    server,
)
from tests.prometheus_server import Server

DISKS = {"channel": "disks", "query": "count(shop_disk_busy_ratio)", "unit": "disks", "step_s": 1}
OF_A_HOST = {"channel": "scrapes", "query": 'shop_scrapes{instance="{host}:9100"}', "role": "sut", "step_s": 1}


@pytest.mark.django_db
def test_a_source_from_its_first_line_to_the_channels_of_a_run(
    server: Server,  # noqa: F811
    api: ApiClient,
    admin: Member,
    stock: dict[str, Any],
) -> None:
    given = {"name": "prod", "url": server.url, "queries": [DISKS], "auth": "bearer", "secret": "only-it-knows"}
    made = api.post("/prometheus-sources", given)
    assert made.status_code == 201, made.content
    assert "only-it-knows" not in made.content.decode()
    here = f"/prometheus-sources/{made.json()['id']}"
    assert api.get("/prometheus-sources").json() == [api.get(here).json()] == [made.json()]
    changed = api.send("PATCH", here, {"queries": [DISKS, OF_A_HOST], "auth": "none"})
    assert changed.status_code == 200, changed.content
    tried = api.post(f"{here}/try", {"host": "sut-1"}).json()
    assert [(one["asked"], one["series"], one["problem"]) for one in tried] == [
        (DISKS["query"], 1, ""),
        ('shop_scrapes{instance="sut-1:9100"}', 1, ""),
    ]
    assert all(one["points"] > 3 for one in tried)
    absent = api.post(f"{here}/try", {"host": "nobody"})
    assert (absent.status_code, absent.json()["field"]) == (422, "host")
    run = measured_run(admin, stock, time.time() - 4)
    (waiting,) = api.get(f"/runs/{run.number}/prometheus").json()
    assert (waiting["name"], waiting["tries"], waiting["read_at"]) == ("prod", 0, None)
    read_all(run)
    (row,) = api.get(f"/runs/{run.number}/prometheus").json()
    assert (row["problem"], row["next_at"]) == ("", None)
    assert row["channels"] == [
        {"role": "sut", "channel": "prometheus.disks"},
        {"role": "sut", "channel": "prometheus.scrapes"},
    ]
    (series,) = api.get(f"/runs/{run.number}/samples?channel=prometheus.disks").json()
    assert (series["unit"], set(series["values"])) == ("disks", {2.0})
    again = api.post(f"/runs/{run.number}/prometheus")
    assert again.status_code == 202, again.content
    assert again.json()[0]["next_at"] is not None
    assert api.send("DELETE", here).json() == {"deleted": "prod"}
    assert api.get(f"/runs/{run.number}/prometheus").json() == []


@pytest.mark.django_db
def test_a_refusal_names_the_field_of_the_query_and_a_trial_says_why_a_server_cannot_be_asked(
    api: ApiClient,
    settings: Any,
    stock: dict[str, Any],
) -> None:
    given = {"name": "prod", "url": "https://prometheus.example.com", "queries": [DISKS, {**DISKS, "channel": "A"}]}
    refused = api.post("/prometheus-sources", given)
    assert (refused.status_code, refused.json()["field"]) == (422, "queries.1.channel")
    settings.BENCHHUB_WEBHOOK_HTTP = True
    made = api.post("/prometheus-sources", {**given, "url": "http://127.0.0.1:9", "queries": [DISKS]})
    here = f"/prometheus-sources/{made.json()['id']}"
    settings.BENCHHUB_WEBHOOK_NETWORKS = []
    tried = api.post(f"{here}/try", {})
    assert [(one["series"], "is not public" in one["problem"]) for one in tried.json()] == [(0, True)]


@pytest.mark.django_db
def test_those_who_read_see_sources_and_change_none(api: ApiClient, admin: Member, make_api: MakeApi) -> None:
    given = {"name": "prod", "url": "https://prometheus.example.com", "queries": [DISKS]}
    here = f"/prometheus-sources/{api.post('/prometheus-sources', given).json()['id']}"
    reader = make_api(admin, "read")
    assert reader.get(here).json()["name"] == "prod"
    for method, path, body in (
        ("POST", "/prometheus-sources", given),
        ("PATCH", here, {"name": "x"}),
        ("DELETE", here, None),
        ("POST", f"{here}/try", {}),
    ):
        assert reader.send(method, path, body).status_code == 403
