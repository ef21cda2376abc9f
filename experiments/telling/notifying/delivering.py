"""Sending what is due: at least once, with pauses that grow over a day, every try written down.

A worker that takes a delivery moves its next time ahead first, so a worker that dies delays it and loses nothing.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import time
from datetime import timedelta

from django.core.mail import EmailMessage
from django.db import transaction
from django.db.models import F, Q, Window
from django.db.models.functions import Now, RowNumber

from agents.base.errors import MISTAKE_HINT
from experiments.models import Delivery, DeliveryAttempt, Webhook
from experiments.registry.database_clock import database_now
from experiments.registry.hosts.keys import KeyFileError
from experiments.registry.outgoing.request import Answer, Resolver, post
from experiments.telling.notifying.webhooks import secret_of, token_of

logger = logging.getLogger(__name__)

PAUSES = tuple(timedelta(minutes=minutes) for minutes in (1, 5, 15, 60, 180, 360, 720))
"""Between the tries: eight of them in a little more than 22 hours."""
MOST_TRIES = len(PAUSES) + 1
LONGEST_PAUSE = max(PAUSES)
LEASE = timedelta(minutes=2)
"""How long a worker may take for a try before another one repeats it."""
KEPT = timedelta(days=30)
MOST_AT_ONCE = 50
GONE = 410


def due() -> list[int]:
    """The deliveries that are to be tried now: those of each team by turns, the longest waiting first."""
    turn = Window(RowNumber(), partition_by="team", order_by=("next_at", "pk"))
    found = Delivery.objects.filter(_is_due()).annotate(turn=turn).order_by("turn", "next_at")
    return list(found.values_list("pk", flat=True)[:MOST_AT_ONCE])


def _is_due() -> Q:
    """Its time has come, or is further away than any pause is long: the clock was set back meanwhile."""
    return Q(next_at__lte=Now()) | Q(next_at__gt=Now() + LONGEST_PAUSE)


def forget_old() -> None:
    """Drop what has been over for a month."""
    Delivery.objects.filter(next_at=None, created_at__lt=Now() - KEPT).delete()


def deliver(delivery_id: int, *, resolve: Resolver | None = None) -> DeliveryAttempt | None:
    """Try this delivery once if it is due; None when it is not, or somebody else is at it."""
    taken = Delivery.objects.filter(_is_due(), pk=delivery_id)
    if not taken.update(next_at=Now() + LEASE, tries=F("tries") + 1):
        return None
    delivery = Delivery.objects.select_related("webhook", "member__user").get(pk=delivery_id)
    try:
        answer = _tried(delivery, resolve)
    except Exception:  # it would be repeated for ever, and nobody would be told
        logger.exception("delivery %s could not be tried, in a way that nobody foresaw", delivery_id)
        answer = Answer(None, 0.0, f"BenchHub made a mistake in sending it. {MISTAKE_HINT}")
    return _write_down(delivery, answer)


def _tried(delivery: Delivery, resolve: Resolver | None) -> Answer:
    if delivery.tries > MOST_TRIES:
        return Answer(None, 0.0, f"No worker came to the end of sending it. {MISTAKE_HINT}")
    if delivery.webhook is not None:
        return _posted(delivery, delivery.webhook, resolve)
    return _mailed(delivery)


def _posted(delivery: Delivery, webhook: Webhook, resolve: Resolver | None) -> Answer:
    body = delivery.body.encode()
    try:
        secret, token = secret_of(webhook), token_of(webhook)
    except KeyFileError as error:
        return Answer(None, 0.0, f"The webhook's secret cannot be read: {error}")
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "BenchHub",
        "X-BenchHub-Event": delivery.event,
        "X-BenchHub-Delivery": str(delivery.public_id),
        "X-BenchHub-Signature": _signature(secret, body, at_unix_s=int(time.time())),
    }
    if token:
        headers["Authorization"] = f"Bearer {token}"
    return post(webhook.url, body, headers, resolve=resolve)


def _mailed(delivery: Delivery) -> Answer:
    began_s = time.monotonic()
    problem, status = "", 200
    if delivery.member is None or not delivery.member.user.email:
        return Answer(GONE, 0.0, "The member has no mail address any more.")
    try:
        subject = " ".join(delivery.subject.split())  # a name with a line break would end the headers
        EmailMessage(subject, delivery.body, to=[delivery.member.user.email]).send()
    except OSError as error:  # SMTPException is one
        status, problem = 503, f"The mail server did not take it: {error}"[:500]
    return Answer(status, 1000 * (time.monotonic() - began_s), problem)


def _write_down(delivery: Delivery, answer: Answer) -> DeliveryAttempt | None:
    """Store the try and what follows from it; None when the webhook was deleted meanwhile."""
    with transaction.atomic():
        if not Delivery.objects.select_for_update(of=("self",)).filter(pk=delivery.pk).exists():
            return None
        attempt = DeliveryAttempt.objects.create(
            delivery=delivery,
            status=answer.status,
            duration_ms=answer.duration_ms,
            problem=answer.problem,
            response=answer.body,
        )
        now = database_now()
        if answer.good:
            state, next_at = Delivery.State.DELIVERED, None
        elif answer.status == GONE or delivery.tries >= MOST_TRIES:
            state, next_at = Delivery.State.GIVEN_UP, None
        else:
            state, next_at = Delivery.State.WAITING, now + PAUSES[delivery.tries - 1]
        Delivery.objects.filter(pk=delivery.pk).update(state=state, next_at=next_at)
        if state == Delivery.State.GIVEN_UP and delivery.webhook is not None:
            _switch_off(delivery.webhook, answer)
    return attempt


def _switch_off(webhook: Webhook, answer: Answer) -> None:
    """An address that answered nothing well for a day, or says that it is gone, is left in peace."""
    if answer.status == GONE:
        why = "It answered 410: it is gone."
    elif webhook.deliveries.filter(state=Delivery.State.DELIVERED, attempts__at__gt=Now() - timedelta(days=1)).exists():
        return
    else:
        why = f"Nothing could be delivered for a day. The last try: {answer.problem or f'status {answer.status}'}"
    Webhook.objects.filter(pk=webhook.pk).update(is_active=False, state_reason=why)
    webhook.deliveries.filter(state=Delivery.State.WAITING).update(state=Delivery.State.GIVEN_UP, next_at=None)


def _signature(secret: str, body: bytes, *, at_unix_s: int) -> str:
    """HMAC-SHA256 over "<t>.<body>" with the webhook's secret: `t=<unix seconds>,v1=<hex>`."""
    signed = hmac.new(secret.encode(), f"{at_unix_s}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={at_unix_s},v1={signed}"
