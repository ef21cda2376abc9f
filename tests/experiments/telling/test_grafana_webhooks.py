"""Webhooks that post annotations to Grafana, against a real receiver: with its token, for the time of the run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from ipaddress import ip_network
from typing import Any

import pytest
from django.test import Client

from experiments.asking.launching.choices import Choice
from experiments.asking.launching.launch import launch_run
from experiments.models import AuditEntry, Delivery, Member, Webhook
from experiments.registry.hosts.key_rotation import rotate_all
from experiments.registry.runs.windows import unix_ms
from experiments.telling.notifying.delivering import deliver
from experiments.telling.notifying.happenings import EVENTS
from tests.experiments.api.conftest import ApiClient, api, make_api  # noqa: F401 - fixtures
from tests.experiments.finished import finish_next
from tests.experiments.telling.receiver import Receiver, running_receiver
from tests.frontend.conftest import browser, browser_of  # noqa: F401 - fixtures

TOKEN = "glsa_only-grafana-knows-it"


@pytest.fixture
def receiver(settings: Any) -> Iterator[Receiver]:
    settings.BENCHHUB_WEBHOOK_HTTP = True
    settings.BENCHHUB_WEBHOOK_NETWORKS = [ip_network("127.0.0.0/8")]
    with running_receiver() as one:
        yield one


def wanted(receiver: Receiver, **more: Any) -> dict[str, Any]:
    url = f"http://127.0.0.1:{receiver.port}/grafana/api/annotations"
    return {"name": "grafana", "url": url, "events": list(EVENTS), "format": "grafana", "token": TOKEN, **more}


def test_a_run_becomes_an_annotation_over_its_time(
    api: ApiClient,  # noqa: F811
    receiver: Receiver,
    admin: Member,
    stock: dict[str, Any],
) -> None:
    made = api.post("/webhooks", wanted(receiver))
    assert made.status_code == 201, made.content
    assert TOKEN not in made.content.decode()
    launch_run(admin, Choice(**stock), labels={"commit": "4f2<c>9d1"})
    run = finish_next()
    attempt = deliver(Delivery.objects.get(event="run.finished").pk)
    assert attempt is not None
    assert (attempt.status, attempt.problem) == (200, "")
    assert receiver.paths == ["/grafana/api/annotations"]
    assert receiver.headers[0]["Authorization"] == f"Bearer {TOKEN}"
    body = json.loads(receiver.bodies[0])
    assert set(body) == {"time", "timeEnd", "tags", "text"}
    assert run.started_at is not None
    assert run.finished_at is not None
    assert (body["time"], body["timeEnd"]) == (unix_ms(run.started_at), unix_ms(run.finished_at))
    assert body["tags"] == ["benchhub", "run.finished", "team:perf", "commit=4f2<c>9d1"]
    link, sentence = body["text"].split("\n")
    assert link.endswith(f'/t/perf/runs/{run.number}/">Run #{run.number} succeeded</a>')
    assert "requests/s" in sentence


def test_what_is_no_span_is_a_moment_and_its_words_are_no_markup(
    api: ApiClient,  # noqa: F811
    receiver: Receiver,
) -> None:
    number = api.post("/webhooks", wanted(receiver, name="<b>")).json()["id"]
    api.post(f"/webhooks/{number}/test")
    deliver(Delivery.objects.get().pk)
    body = json.loads(receiver.bodies[0])
    assert set(body) == {"time", "tags", "text"}
    assert "the webhook &lt;b&gt;." in body["text"]


def test_the_token_is_sealed_and_goes_to_no_other_place_than_it_was_given_for(
    api: ApiClient,  # noqa: F811
    receiver: Receiver,
    browser: Client,  # noqa: F811
) -> None:
    number = api.post("/webhooks", wanted(receiver)).json()["id"]
    stored = bytes(Webhook.objects.get().token)
    assert stored
    assert TOKEN.encode() not in stored
    assert TOKEN not in json.dumps(list(AuditEntry.objects.values("before", "after")))
    assert TOKEN not in browser.get(f"/t/perf/settings/webhooks/{number}/").content.decode()
    assert f"webhook token:{Webhook.objects.get().pk}" in {one.row for one in rotate_all()}
    assert api.send("PATCH", f"/webhooks/{number}", {"name": "other"}).status_code == 200
    assert bytes(Webhook.objects.get().token)
    moved = api.send("PATCH", f"/webhooks/{number}", {"url": "http://127.0.0.1:9/api/annotations"})
    assert (moved.status_code, moved.json()["field"]) == (422, "token")
    assert Webhook.objects.get().url.startswith(f"http://127.0.0.1:{receiver.port}/")
    assert api.send("PATCH", f"/webhooks/{number}", {"format": "json"}).status_code == 200
    assert bytes(Webhook.objects.get().token) == b""


@pytest.mark.parametrize(
    "more, field",
    [
        ({"token": ""}, "token"),
        ({"token": "with a blank"}, "token"),
        ({"token": "line\u2028break"}, "token"),
        ({"url": "http://127.0.0.1:9/api/dashboards"}, "url"),
        ({"url": "http://192.0.2.7/api/annotations"}, "url"),
        ({"format": "json"}, "token"),
        ({"format": "slack"}, "token"),
        ({"format": "grafanas"}, "format"),
    ],
)
def test_what_does_not_fit_is_refused_at_its_field(
    api: ApiClient,  # noqa: F811
    receiver: Receiver,
    more: dict[str, Any],
    field: str,
) -> None:
    answer = api.post("/webhooks", wanted(receiver, **more))
    assert (answer.status_code, answer.json()["field"]) == (422, field)
    assert not Webhook.objects.exists()


def test_a_page_makes_one_too(browser: Client, receiver: Receiver) -> None:  # noqa: F811
    typed = {**wanted(receiver), "events": ["run.finished"], "is_active": "on"}
    page = browser.post("/t/perf/settings/webhooks/", typed).content.decode()
    assert TOKEN not in page
    assert Webhook.objects.get().format == "grafana"
