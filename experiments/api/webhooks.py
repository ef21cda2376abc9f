"""Webhooks of the team and their deliveries: for admins, as the address of a chat's webhook is a secret."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from django.db import transaction
from django.http import HttpRequest
from ninja import Router
from ninja.params.functions import Query
from ninja.responses import Status
from pydantic import BaseModel, Field

from experiments.api.choices import DeliveryState, WebhookFormat
from experiments.api.plumbing.auth import ADMIN, member_of
from experiments.api.plumbing.idempotency import idempotent
from experiments.api.plumbing.paging import paged
from experiments.api.shapes import MAX_ID, Body, Flag
from experiments.models import Delivery, DeliveryAttempt, Webhook
from experiments.registry.outgoing.addresses import MAX_URL
from experiments.telling.notifying import webhooks
from experiments.telling.notifying.happenings import EVENTS
from experiments.telling.notifying.reading import deliveries_of, find_delivery, find_webhook, webhooks_of

router = Router(auth=ADMIN, tags=["webhooks"])
EventName = Literal[
    "run.finished",
    "verdict.reached",
    "alert.raised",
    "rule.broken",
    "host.quarantined",
    "schedule.skipped",
    "schedule.failed",
]
FormatName = Literal["json", "slack", "grafana"]
OF_GRAFANA = "Of the format grafana: of a service account that may write annotations. It is not shown again"
EVENTS_SAID = "; ".join(f"{name}: {said}" for name, said in EVENTS.items())


class WebhookOut(BaseModel):
    id: int
    name: str
    url: str
    format: WebhookFormat
    events: list[str]
    is_active: bool
    state_reason: str = Field(description="Why BenchHub switched it off")
    created_by: str | None
    created_at: datetime

    @classmethod
    def of(cls, webhook: Webhook) -> WebhookOut:
        return cls(
            id=webhook.pk,
            name=webhook.name,
            url=webhook.url,
            format=webhook.format,
            events=webhook.events,
            is_active=webhook.is_active,
            state_reason=webhook.state_reason,
            created_by=webhook.created_by.get_username() if webhook.created_by else None,
            created_at=webhook.created_at,
        )


class WebhookWithSecret(WebhookOut):
    secret: str = Field(description="It signs every message, and is not shown again")


class AttemptOut(BaseModel):
    at: datetime
    status: int | None = Field(description="null: there was no answer")
    duration_ms: float
    problem: str
    response: str = Field(description="The beginning of the answer")

    @classmethod
    def of(cls, attempt: DeliveryAttempt) -> AttemptOut:
        return cls(
            at=attempt.at,
            status=attempt.status,
            duration_ms=attempt.duration_ms,
            problem=attempt.problem,
            response=attempt.response,
        )


class DeliveryOut(BaseModel):
    id: int
    message_id: str = Field(description="As in X-BenchHub-Delivery, the same for every try")
    event: str
    state: DeliveryState
    created_at: datetime
    next_at: datetime | None = Field(description="When it is tried next")
    body: str = Field(description="Exactly what is sent")
    attempts: list[AttemptOut]

    @classmethod
    def of(cls, delivery: Delivery) -> DeliveryOut:
        return cls(
            id=delivery.pk,
            message_id=str(delivery.public_id),
            event=delivery.event,
            state=delivery.state,
            created_at=delivery.created_at,
            next_at=delivery.next_at,
            body=delivery.body,
            attempts=[AttemptOut.of(attempt) for attempt in delivery.attempts.all()],
        )


class DeliveryPage(BaseModel):
    items: list[DeliveryOut]
    next_cursor: str = Field(description="Empty at the end")


class WebhookIn(Body):
    name: str = Field(min_length=1, max_length=120)
    url: str = Field(min_length=1, max_length=MAX_URL, examples=["https://hooks.example.com/T1/B2/x"])
    events: list[EventName] = Field(min_length=1, max_length=20, description=EVENTS_SAID)
    format: FormatName = "json"
    is_active: Flag = True
    token: str = Field("", max_length=webhooks.MAX_TOKEN, description=OF_GRAFANA)


class WebhookChange(Body):
    """What is left out stays."""

    name: str | None = Field(None, min_length=1, max_length=120)
    url: str | None = Field(None, min_length=1, max_length=MAX_URL)
    events: list[EventName] | None = Field(None, min_length=1, max_length=20)
    format: FormatName | None = None
    is_active: Flag | None = None
    token: str = Field("", max_length=webhooks.MAX_TOKEN, description=OF_GRAFANA)


class WebhookDeleted(BaseModel):
    deleted: str


@router.get("", response=list[WebhookOut])
@paged
def list_webhooks(request: HttpRequest) -> list[WebhookOut]:
    """The team's webhooks by name, without their secrets."""
    return [WebhookOut.of(webhook) for webhook in webhooks_of(member_of(request))]


@router.post("", response={201: WebhookWithSecret})
def create_webhook(request: HttpRequest, payload: WebhookIn) -> Status[WebhookWithSecret]:
    """Tell an address about events. The secret is in this answer alone."""
    webhook, secret = webhooks.create_webhook(member_of(request), webhooks.Wanted(**payload.model_dump()))
    return Status(201, WebhookWithSecret(**WebhookOut.of(webhook).model_dump(), secret=secret))


@router.get("/{int:webhook_id}", response=WebhookOut)
def get_webhook(request: HttpRequest, webhook_id: int) -> WebhookOut:
    """One webhook, without its secret."""
    return WebhookOut.of(find_webhook(member_of(request), webhook_id))


@router.patch("/{int:webhook_id}", response=WebhookOut)
def change_webhook(request: HttpRequest, webhook_id: int, payload: WebhookChange) -> WebhookOut:
    """Other values. `is_active` true switches one on again that BenchHub switched off."""
    member = member_of(request)
    with transaction.atomic():  # what is left out stays as it is now, not as it was when it was read
        webhook = webhooks.locked_webhook(find_webhook(member, webhook_id))
        before = {name: getattr(webhook, name) for name in WebhookChange.model_fields if name != "token"}
        wanted = webhooks.Wanted(**before | payload.model_dump(exclude_none=True))
        webhooks.change_webhook(member, webhook, wanted)
    return WebhookOut.of(webhook)


@router.post("/{int:webhook_id}/secret", response=WebhookWithSecret)
def rotate_webhook_secret(request: HttpRequest, webhook_id: int) -> WebhookWithSecret:
    """A new secret in place of the old one, at once."""
    member = member_of(request)
    webhook = find_webhook(member, webhook_id)
    return WebhookWithSecret(**WebhookOut.of(webhook).model_dump(), secret=webhooks.rotate_secret(member, webhook))


@router.post("/{int:webhook_id}/test", response={202: DeliveryOut})
@idempotent
def test_webhook(request: HttpRequest, webhook_id: int) -> Status[DeliveryOut]:
    """Send a message that says so; its delivery shows what came back."""
    member = member_of(request)
    return Status(202, DeliveryOut.of(webhooks.send_test(member, find_webhook(member, webhook_id))))


@router.delete("/{int:webhook_id}", response=WebhookDeleted)
def delete_webhook(request: HttpRequest, webhook_id: int) -> WebhookDeleted:
    """End a webhook, with its log and whatever waits."""
    member = member_of(request)
    webhook = find_webhook(member, webhook_id)
    webhooks.delete_webhook(member, webhook)
    return WebhookDeleted(deleted=webhook.name)


@router.get("/{int:webhook_id}/deliveries", response=DeliveryPage)
def list_deliveries(
    request: HttpRequest,
    webhook_id: int,
    cursor: int = Query(0, ge=0, le=MAX_ID),
    limit: int = Query(50, ge=1, le=200),
) -> DeliveryPage:
    """What was sent or waits, the newest first, with every try; kept for 30 days."""
    webhook = find_webhook(member_of(request), webhook_id)
    rows, before = deliveries_of(webhook).newest_page(cursor or None, limit)
    return DeliveryPage(
        items=[DeliveryOut.of(row) for row in rows],
        next_cursor=str(before or ""),
    )


@router.post("/{int:webhook_id}/deliveries/{int:delivery_id}/redeliver", response={202: DeliveryOut})
@idempotent
def redeliver(request: HttpRequest, webhook_id: int, delivery_id: int) -> Status[DeliveryOut]:
    """Send the same message again, under the same id."""
    member = member_of(request)
    delivery = find_delivery(member, webhook_id, delivery_id)
    webhooks.redeliver(member, delivery)
    return Status(202, DeliveryOut.of(delivery))
