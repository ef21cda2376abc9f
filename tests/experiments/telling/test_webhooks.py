"""Webhooks against a real receiver: signed, checked at the connection, tried again, never lost."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import socket
import threading
from collections.abc import Iterator, Sequence
from datetime import timedelta
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
from django.core import mail
from django.utils import timezone

from experiments.asking.launching.choices import Candidate, Choice
from experiments.asking.launching.creating import create_experiment
from experiments.asking.launching.launch import launch_experiment, launch_run
from experiments.models import AuditEntry, Delivery, DeliveryAttempt, Member, Role, Webhook
from experiments.registry.errors import Conflict, Forbidden, RequestError
from experiments.registry.outgoing import request
from experiments.telling.notifying import delivering
from experiments.telling.notifying.delivering import PAUSES, deliver
from experiments.telling.notifying.events import tell
from experiments.telling.notifying.happenings import EVENTS, RUN_FINISHED, Happening
from experiments.telling.notifying.webhooks import (
    Wanted,
    change_webhook,
    create_webhook,
    delete_webhook,
    redeliver,
    rotate_secret,
    secret_of,
    send_test,
)
from tests.experiments.conftest import MakeMember
from tests.experiments.finished import finish_next, whole_run
from tests.experiments.telling.receiver import NAME, Receiver, running_receiver

DOCS = Path(__file__).parents[3] / "docs" / "webhooks.md"


@pytest.fixture
def allowed(settings: Any) -> None:
    settings.BENCHHUB_WEBHOOK_HTTP = True
    settings.BENCHHUB_WEBHOOK_NETWORKS = [ip_network("127.0.0.0/8")]


@pytest.fixture
def receiver(allowed: None) -> Iterator[Receiver]:
    with running_receiver() as one:
        yield one


@pytest.fixture
def webhook(admin: Member, receiver: Receiver) -> Webhook:
    return make(admin, receiver)[0]


def make(member: Member, receiver: Receiver, **more: Any) -> tuple[Webhook, str]:
    given = {"name": "chat", "url": f"http://127.0.0.1:{receiver.port}/hook?a=1", "events": list(EVENTS), **more}
    return create_webhook(member, Wanted(**given))


def happened(webhook: Webhook, **more: Any) -> Delivery:
    given = {"title": "Run #7 failed", "sentence": "No <b>answer</b> & no figures.", "path": "runs/7/", **more}
    tell(webhook.team_id, Happening(RUN_FINISHED, **given, data={"number": 7}))
    return Delivery.objects.latest("pk")


def resolving(*answers: Sequence[str]) -> tuple[request.Resolver, list[str]]:
    """A resolver that answers differently each time, and the names that it was asked for."""
    asked: list[str] = []

    async def resolve(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        return answers[min(len(asked), len(answers)) - 1]

    return resolve, asked


def test_a_delivery_is_signed_as_the_documentation_checks_it(admin: Member, receiver: Receiver) -> None:
    webhook, secret = make(admin, receiver)
    delivery = happened(webhook)
    attempt = deliver(delivery.pk)
    assert attempt is not None
    assert (attempt.status, attempt.response, attempt.problem) == (200, "thanks", "")
    delivery.refresh_from_db()
    assert (delivery.state, delivery.next_at) == ("delivered", None)
    header, body = receiver.headers[0]["X-BenchHub-Signature"], receiver.bodies[0]
    snippet = re.search(r"```python\n(.+?)```", DOCS.read_text(), re.S)
    assert snippet is not None
    space: dict[str, Any] = {"hmac": hmac, "hashlib": hashlib}
    exec(snippet[1], space)
    check, now_s = space["is_from_benchhub"], timezone.now().timestamp()
    assert check(secret, header, body, now_s)
    assert not check(secret, header, body + b" ", now_s)
    assert not check("whsec_other", header, body, now_s)
    assert not check(secret, header, body, now_s + 3600)
    payload = json.loads(body)
    assert payload["id"] == receiver.headers[0]["X-BenchHub-Delivery"] == str(delivery.public_id)
    assert (payload["event"], payload["team"], payload["data"]) == (RUN_FINISHED, "perf", {"number": 7})
    assert payload["url"].endswith("/t/perf/runs/7/")
    assert receiver.paths == ["/hook?a=1"]
    assert deliver(delivery.pk) is None


def test_the_documented_payload_has_the_fields_that_are_sent(webhook: Webhook) -> None:
    shown = re.search(r"```json\n(.+?)```", DOCS.read_text(), re.S)
    assert shown is not None
    assert set(json.loads(shown[1])) == set(json.loads(happened(webhook).body))
    for event in EVENTS:
        assert f"| `{event}` |" in DOCS.read_text()


def test_a_slack_message_has_text_and_blocks_and_no_markup_of_others(admin: Member, receiver: Receiver) -> None:
    webhook, _ = make(admin, receiver, format="slack")
    deliver(happened(webhook).pk)
    message = json.loads(receiver.bodies[0])
    assert set(message) == {"text", "blocks"}
    assert message["text"] == "Run #7 failed: No &lt;b&gt;answer&lt;/b&gt; &amp; no figures."
    section = message["blocks"][0]["text"]
    assert section["type"] == "mrkdwn"
    assert "/t/perf/runs/7/|Run #7 failed>" in section["text"]


@pytest.mark.parametrize(
    ("behaviour", "status", "problem"),
    [
        ({"status": 500}, 500, ""),
        ({"status": 302, "location": "/elsewhere"}, 302, "It answered with a redirect, which is not followed"),
        ({"status": 307, "location": "http://169.254.169.254/"}, 307, "It answered with a redirect"),
    ],
)
def test_what_is_no_success_is_tried_again_later(
    webhook: Webhook, receiver: Receiver, behaviour: dict[str, Any], status: int, problem: str
) -> None:
    for name, value in behaviour.items():
        setattr(receiver, name, value)
    delivery = happened(webhook)
    attempt = deliver(delivery.pk)
    assert attempt is not None
    assert attempt.status == status
    assert attempt.problem.startswith(problem)
    delivery.refresh_from_db()
    assert (delivery.state, delivery.tries) == ("waiting", 1)
    assert delivery.next_at is not None
    assert delivery.next_at > timezone.now()
    assert receiver.paths == ["/hook?a=1"]
    assert deliver(delivery.pk) is None


def test_an_endless_answer_is_read_up_to_its_limit(webhook: Webhook, receiver: Receiver) -> None:
    receiver.endless = True
    attempt = deliver(happened(webhook).pk)
    assert attempt is not None
    assert (attempt.status, len(attempt.response)) == (200, request.KEPT_CHARS)


def test_an_answer_that_does_not_come_is_given_up(
    webhook: Webhook, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request, "LIMIT_S", 0.2)
    receiver.slow = True
    attempt = deliver(happened(webhook).pk)
    assert attempt is not None
    assert (attempt.status, attempt.problem) == (None, "No complete answer within 0.2 s.")


def test_a_name_server_that_says_nothing_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    said = threading.Event()
    monkeypatch.setattr(request, "LIMIT_S", 0.2)
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: said.wait())
    try:
        assert request.post("https://hooks.example.com/", b"{}", {}).problem == "No complete answer within 0.2 s."
    finally:
        said.set()


def test_a_team_with_many_messages_does_not_keep_another_one_waiting(
    admin: Member, other_admin: Member, receiver: Receiver
) -> None:
    many, few = make(admin, receiver)[0], make(other_admin, receiver)[0]
    first, second, third = (happened(many).pk for _ in range(3))
    other = happened(few).pk
    assert delivering.due() == [first, other, second, third]


def test_where_nobody_listens_the_attempt_says_so(admin: Member, allowed: None) -> None:
    with running_receiver() as gone:
        webhook, _ = make(admin, gone)
    attempt = deliver(happened(webhook).pk)
    assert attempt is not None
    assert attempt.status is None
    assert attempt.problem.startswith("The connection failed: ")


def test_a_name_is_resolved_once_and_the_checked_address_is_connected_to(
    admin: Member, receiver: Receiver, settings: Any
) -> None:
    webhook, _ = make(admin, receiver, url=f"http://{NAME}:{receiver.port}/")
    settings.BENCHHUB_WEBHOOK_NETWORKS = [ip_network("127.0.0.1/32")]
    resolve, asked = resolving(["127.0.0.1"], ["127.0.0.2"], ["127.0.0.1", "127.0.0.2"])
    good = deliver(happened(webhook).pk, resolve=resolve)
    assert good is not None
    assert (good.status, asked, len(receiver.bodies)) == (200, [NAME], 1)
    assert receiver.headers[0]["Host"] == f"{NAME}:{receiver.port}"
    for _ in range(2):  # the name leads elsewhere now, or to one of each
        attempt = deliver(happened(webhook).pk, resolve=resolve)
        assert attempt is not None
        assert (attempt.status, attempt.problem[:44]) == (None, "The name leads to 127.0.0.2, which is not pu")
    assert len(receiver.bodies) == 1


def test_tls_is_checked_against_the_name_and_the_authority(
    admin: Member, allowed: None, settings: Any, tmp_path: Path
) -> None:
    with running_receiver(tls=tmp_path) as receiver:
        webhook, _ = make(admin, receiver, url=f"https://{NAME}:{receiver.port}/")
        other, _ = make(admin, receiver, name="other", url=f"https://other.test:{receiver.port}/")
        resolve, _ = resolving(["127.0.0.1"])
        happened(webhook)
        ours, theirs = (one.deliveries.get() for one in (webhook, other))
        unknown = deliver(ours.pk, resolve=resolve)
        assert unknown is not None
        assert unknown.status is None
        assert unknown.problem == (
            "TLS failed: the certificate is not accepted: unable to get local issuer certificate."
        )
        settings.BENCHHUB_WEBHOOK_CA_FILE = tmp_path / "ca.pem"
        Delivery.objects.update(next_at=timezone.now())
        wrong = deliver(theirs.pk, resolve=resolve)
        assert wrong is not None
        assert (wrong.status, receiver.bodies) == (None, [])
        assert "Hostname mismatch, certificate is not valid for 'other.test'" in wrong.problem
        good = deliver(ours.pk, resolve=resolve)
        assert good is not None
        assert (good.problem, good.status, len(receiver.bodies)) == ("", 200, 1)


@pytest.mark.parametrize(
    ("tries_before", "state", "problem"),
    [
        (0, "waiting", "BenchHub made a mistake in sending it."),
        (len(PAUSES), "given_up", "BenchHub made a mistake in sending it."),
        (len(PAUSES) + 1, "given_up", "No worker came to the end of sending it."),
    ],
)
def test_what_nobody_foresaw_is_written_down_as_a_try_and_given_up_like_any_other(
    webhook: Webhook, tries_before: int, state: str, problem: str
) -> None:
    async def broken(host: str, port: int) -> Sequence[str]:
        raise LookupError(host)

    delivery = happened(webhook)
    Delivery.objects.update(tries=tries_before)
    attempt = deliver(delivery.pk, resolve=broken)
    assert attempt is not None
    assert attempt.problem.startswith(problem)
    delivery.refresh_from_db()
    assert (delivery.state, delivery.next_at is None) == (state, state == "given_up")


def test_after_a_day_it_is_given_up_and_the_webhook_is_switched_off(webhook: Webhook, receiver: Receiver) -> None:
    receiver.status = 503
    delivery = happened(webhook)
    waits = []
    for _ in range(len(PAUSES) + 1):
        before = timezone.now()
        Delivery.objects.filter(pk=delivery.pk).update(next_at=before)
        deliver(delivery.pk)
        delivery.refresh_from_db()
        if delivery.next_at is not None:
            waits.append(delivery.next_at - before)
    assert all(pause <= wait < pause * 1.5 + timedelta(minutes=2) for pause, wait in zip(PAUSES, waits, strict=True))
    assert sum(PAUSES, timedelta()) < timedelta(days=1)
    assert (delivery.state, delivery.attempts.count()) == ("given_up", 8)
    webhook.refresh_from_db()
    assert not webhook.is_active
    assert webhook.state_reason == "Nothing could be delivered for a day. The last try: status 503"
    happened(webhook)
    assert Delivery.objects.count() == 1


def test_an_address_that_is_gone_is_switched_off_at_once(webhook: Webhook, receiver: Receiver) -> None:
    receiver.status = 410
    deliver(happened(webhook).pk)
    webhook.refresh_from_db()
    assert (webhook.is_active, webhook.state_reason) == (False, "It answered 410: it is gone.")


def test_a_worker_that_died_with_a_delivery_only_delays_it(webhook: Webhook, receiver: Receiver) -> None:
    delivery = happened(webhook)
    assert delivering.due() == [delivery.pk]
    Delivery.objects.filter(pk=delivery.pk).update(next_at=timezone.now() + delivering.LEASE, tries=1)
    assert (delivering.due(), deliver(delivery.pk)) == ([], None)
    Delivery.objects.filter(pk=delivery.pk).update(next_at=timezone.now())
    assert deliver(delivery.pk) is not None
    delivery.refresh_from_db()
    assert (delivery.state, delivery.tries) == ("delivered", 2)


def test_a_message_is_sent_again_under_its_id(admin: Member, webhook: Webhook, receiver: Receiver) -> None:
    delivery = happened(webhook)
    with pytest.raises(Conflict):
        redeliver(admin, delivery)
    deliver(delivery.pk)
    redeliver(admin, delivery)
    deliver(delivery.pk)
    assert receiver.bodies[0] == receiver.bodies[1]
    assert receiver.headers[0]["X-BenchHub-Delivery"] == receiver.headers[1]["X-BenchHub-Delivery"]
    assert DeliveryAttempt.objects.count() == 2


def test_what_is_over_for_a_month_is_forgotten(webhook: Webhook) -> None:
    old, new = happened(webhook), happened(webhook)
    Delivery.objects.update(next_at=None, created_at=timezone.now() - timedelta(days=31))
    Delivery.objects.filter(pk=new.pk).update(created_at=timezone.now())
    delivering.forget_old()
    assert list(Delivery.objects.values_list("pk", flat=True)) == [new.pk]
    assert old.pk != new.pk


def test_the_secret_is_shown_once_and_replaced_at_once(admin: Member, receiver: Receiver) -> None:
    webhook, secret = make(admin, receiver)
    assert secret.encode() not in bytes(webhook.secret)
    fresh = rotate_secret(admin, webhook)
    webhook.refresh_from_db()
    assert secret_of(webhook) == fresh != secret
    trail = json.dumps(list(AuditEntry.objects.values("action", "subject", "before", "after")))
    assert secret not in trail
    assert "/hook" not in trail


def test_webhooks_are_for_admins_and_audited(admin: Member, webhook: Webhook, make_member: MakeMember) -> None:
    editor = make_member(admin.team, Role.EDITOR)
    wanted = Wanted("chat", webhook.url, ["alert.raised"], is_active=False)
    happened(webhook)
    for refusal in (
        lambda: create_webhook(editor, wanted),
        lambda: change_webhook(editor, webhook, wanted),
        lambda: rotate_secret(editor, webhook),
        lambda: delete_webhook(editor, webhook),
        lambda: send_test(editor, webhook),
        lambda: redeliver(editor, Delivery.objects.get()),
    ):
        with pytest.raises(Forbidden):
            refusal()
    assert send_test(admin, webhook).event == "webhook.test"
    change_webhook(admin, webhook, wanted)
    assert set(Delivery.objects.values_list("state", flat=True)) == {"given_up"}
    delete_webhook(admin, webhook)
    actions = AuditEntry.objects.filter(action__startswith="webhook.").order_by("pk").values_list("action", flat=True)
    assert list(actions) == ["webhook.create", "webhook.test", "webhook.change", "webhook.delete"]


@pytest.mark.parametrize(
    ("given", "field"),
    [({"name": " "}, "name"), ({"events": []}, "events"), ({"events": ["x"]}, "events"), ({"format": "xml"}, "format")],
)
def test_what_makes_no_webhook_is_refused_at_its_field(
    admin: Member, receiver: Receiver, given: dict[str, Any], field: str
) -> None:
    with pytest.raises(RequestError) as refusal:
        make(admin, receiver, **given)
    assert refusal.value.field == field


def payloads() -> list[dict[str, Any]]:
    return [json.loads(body) for body in Delivery.objects.exclude(webhook=None).values_list("body", flat=True)]


def test_a_finished_run_and_a_dirty_host_are_told(admin: Member, webhook: Webhook, stock: dict[str, Any]) -> None:
    launch_run(admin, Choice(**stock), labels={"commit": "4f2c"})
    finish_next(whole_run(differences=("sysctl vm.swappiness is 10, was 60",)))
    dirty, finished = payloads()
    assert (dirty["event"], finished["event"]) == ("host.quarantined", "run.finished")
    assert dirty["data"]["host"] == "sut-1"
    assert "vm.swappiness" in dirty["sentence"]
    assert finished["title"] == "Run #1 succeeded"
    assert finished["data"]["labels"] == {"commit": "4f2c"}
    assert finished["data"]["throughput_rps"] == 1000.0


def test_a_verdict_is_told_once_when_all_runs_are_over(admin: Member, webhook: Webhook, stock: dict[str, Any]) -> None:
    Webhook.objects.update(events=["verdict.reached"])
    Member.objects.filter(pk=admin.pk).update(mails_verdicts=True)
    admin.user.email = "ada@example.com"
    admin.user.save()
    one = Choice(**stock)
    candidates = [
        Candidate(name, one.application, one.recipe, one.sut, one.drivers, {"nofile": nofile})
        for name, nofile in (("small", 1024), ("large", 65535))
    ]
    experiment = create_experiment(admin, name="Files", workload=one.workload, candidates=candidates, repetitions=1)
    launch_experiment(admin, experiment)
    finish_next()
    assert not Delivery.objects.exists()
    finish_next()
    (told,) = payloads()
    assert told["title"] == "Verdict: Files"
    assert told["data"]["verdicts"][0]["candidate"] == "large"
    assert told["data"]["verdicts"][0]["outcome"] == "invalid"
    letter = Delivery.objects.get(webhook=None)
    deliver(letter.pk)
    assert [(sent.subject, sent.to) for sent in mail.outbox] == [("[BenchHub] Verdict: Files", ["ada@example.com"])]
    assert f"/t/perf/experiments/{experiment.pk}/" in str(mail.outbox[0].body)


def test_a_failed_run_is_mailed_to_who_asked_for_it(admin: Member, stock: dict[str, Any]) -> None:
    Member.objects.filter(pk=admin.pk).update(mails_failed_runs=True)
    admin.user.email = "ada@example.com"
    admin.user.save()
    launch_run(admin, Choice(**stock))
    finish_next()
    assert not Delivery.objects.exists()
    launch_run(admin, Choice(**stock))
    finish_next([])
    deliver(Delivery.objects.get().pk)
    assert [sent.subject for sent in mail.outbox] == ["[BenchHub] Run #2 failed"]


def test_a_name_with_a_line_break_ends_no_header(admin: Member) -> None:
    Member.objects.filter(pk=admin.pk).update(mails_failed_runs=True)
    admin.user.email = "ada@example.com"
    admin.user.save()
    happening = Happening(RUN_FINISHED, "Odd\nBcc: all@example.com", "It ended.", "")
    tell(admin.team_id, happening, mail_to="mails_failed_runs")
    attempt = deliver(Delivery.objects.get().pk)
    assert attempt is not None
    assert [sent.subject for sent in mail.outbox] == ["[BenchHub] Odd Bcc: all@example.com"]


def test_nobody_is_told_of_another_teams_runs(
    other_admin: Member, admin: Member, webhook: Webhook, stock: dict[str, Any], receiver: Receiver
) -> None:
    make(other_admin, receiver)
    launch_run(admin, Choice(**stock))
    finish_next()
    assert {delivery.webhook for delivery in Delivery.objects.all()} == {webhook}
