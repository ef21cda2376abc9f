"""What all lists and all long answers share: where the list goes on, and compression."""

from __future__ import annotations

import gzip
import json
import re
from typing import Any

import pytest
from django.db.models.signals import post_init

from experiments.models import Run, SampleSeries
from tests.experiments.api.conftest import ApiClient
from tests.experiments.api.test_auth import BODIES, NAMES, OPERATIONS
from tests.experiments.conftest import WORKLOAD

NO_LIST = {"list_timers", "list_load_parts"}


def test_every_list_takes_a_cursor_and_a_limit_and_has_the_header_link() -> None:
    for _, path, said in OPERATIONS:
        content = said["responses"].get("200", {}).get("content", {}).get("application/json", {}).get("schema", {})
        shape = content.get("anyOf", [content])[0]
        if said["operationId"].startswith("list_") and shape.get("type") == "array":
            taken = {one["name"] for one in said["parameters"]}
            assert {"cursor", "limit"} <= taken, path
            assert "Link" in said["responses"]["200"]["headers"], path


def followed(api: ApiClient, path: str) -> list[Any]:
    """All rows, by the header alone."""
    rows: list[Any] = []
    while path:
        answer = api.get(path)
        page = answer.json()
        rows += page if isinstance(page, list) else page["items"]
        link = re.search(r'<http://testserver/api/v1([^>]+)>; rel="next"', answer.get("Link", ""))
        path = link[1] if link else ""
    return rows


@pytest.mark.parametrize(
    ("query", "channels", "goes_on"),
    [
        ("limit=1", ["c0"], True),
        ("limit=2&cursor=1", ["c1", "c2"], True),
        ("limit=2&cursor=3", ["c3", "c4"], False),
        ("limit=1&channel=c3", ["c3"], False),
        ("cursor=9", [], False),
        ("", ["c0", "c1", "c2", "c3", "c4"], False),
    ],
)
def test_a_page_of_samples_reads_the_points_of_its_own_channels_alone(
    api: ApiClient, stock: dict[str, Any], query: str, channels: list[str], goes_on: bool
) -> None:
    api.post("/runs", NAMES)
    run = Run.objects.get()
    for place in range(5):
        SampleSeries.objects.create(run=run, role="sut", channel=f"c{place}", unit="x", at_s=[0.0], values=[1.0])
    read: list[str] = []

    def note(instance: SampleSeries, **_: Any) -> None:
        read.append(instance.channel)

    post_init.connect(note, sender=SampleSeries)
    try:
        answer = api.get(f"/runs/1/samples?{query}")
    finally:
        post_init.disconnect(note, sender=SampleSeries)
    assert [one["channel"] for one in answer.json()] == read == channels
    assert ('rel="next"' in answer.get("Link", "")) is goes_on


def test_any_list_is_read_to_its_end_by_its_links(api: ApiClient, stock: dict[str, Any]) -> None:
    for name in ("c", "d", "e"):
        api.post("/hosts", {**BODIES["create_host"], "name": name})
        api.post("/runs", NAMES)
        api.post("/experiments", {**BODIES["create_experiment"], "name": name})
    assert [run["number"] for run in followed(api, "/runs?limit=1&state=queued&fields=number")] == [3, 2, 1]
    assert [one["name"] for one in followed(api, "/experiments?limit=2&fields=name")] == ["e", "d", "c"]
    assert [one["name"] for one in followed(api, "/hosts?limit=2")] == ["c", "d", "driver-1", "e", "sut-1"]
    assert [one["name"] for one in followed(api, "/hosts?limit=2&fields=name")] == ["c", "d", "driver-1", "e", "sut-1"]
    assert len(followed(api, "/metrics?limit=7")) == len(api.get("/metrics").json())
    assert len(followed(api, "/recipes?limit=1")) == 1
    for number in (1, 3):
        api.post(f"/runs/{number}/cancel")
    api.post("/trash", {"runs": [1, 3]})
    assert [one["number"] for one in followed(api, "/trash?limit=1")] == [3, 1]
    api.post("/trash/restore", {"runs": [1, 3]})
    for body in (WORKLOAD, {**WORKLOAD, "description": "another"}):
        assert api.put("/workloads/100%25%20GET%3Fq%231", body).status_code in (200, 201)
    assert len(followed(api, "/workloads/100%25%20GET%3Fq%231/versions?limit=1")) == 2
    run = Run.objects.get(number=1)
    for seq in range(1, 6):
        run.events.create(
            seq=seq + 100,
            fence=1,
            at=run.queued_at,
            kind="logged",
            payload={"source": "x", "level": "info", "lines": ["a"]},
        )
    assert [one["seq"] for one in followed(api, "/runs/1/log?limit=2")] == [101, 102, 103, 104, 105]


@pytest.mark.parametrize(
    ("path", "field"),
    [("/hosts?state__in=ready,broken", "state__in"), ("/hosts?roles__in=sut,x", "roles__in"),
     ("/experiments?state__in=runing", "state__in"), ("/runs?state__in=queued,x", "state__in")],
)  # fmt: skip
def test_a_list_refuses_a_state_that_there_is_not(api: ApiClient, path: str, field: str) -> None:
    answer = api.get(path)
    assert (answer.status_code, answer.json()["field"], "known: " in answer.json()["detail"]) == (422, field, True)


def test_a_long_answer_is_compressed_for_whoever_takes_that(api: ApiClient, stock: dict[str, Any]) -> None:
    plain = api.get("/metrics")
    packed = api.get("/metrics", headers={"Accept-Encoding": "br, gzip;q=0.8"})
    assert (packed["Content-Encoding"], packed["Vary"]) == ("gzip", plain["Vary"])
    assert json.loads(gzip.decompress(packed.content)) == plain.json()
    assert len(packed.content) == int(packed["Content-Length"]) < len(plain.content) / 2
    for path, accepted in (("/metrics", "gzip;q=0"), ("/me", "gzip"), ("/recipes/limits", "gzip")):
        assert not api.get(path, headers={"Accept-Encoding": accepted}).has_header("Content-Encoding"), path


def test_a_name_that_is_taken_is_a_409(api: ApiClient, stock: dict[str, Any]) -> None:
    made = api.post("/experiments", BODIES["create_experiment"]).json()["id"]
    for path, body in (
        ("/hosts", BODIES["create_host"]),
        ("/webhooks", BODIES["create_webhook"]),
        ("/prometheus-sources", BODIES["create_prometheus_source"]),
        ("/alert-rules", BODIES["create_alert_rule"]),
        ("/services", BODIES["create_service"]),
        ("/schedules", {**BODIES["create_schedule"], "experiment": made}),
    ):
        first, second = api.post(path, body), api.post(path, body)
        assert (first.status_code, second.status_code, second.json()["field"]) == (201, 409, "name"), second.content
