"""Mail about new alerts to the members who want it: after the commit, and never twice for one alert."""

from __future__ import annotations

import logging
from datetime import timedelta

from django.conf import settings
from django.core.mail import EmailMessage, get_connection
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from experiments.judging.alerts.causes import causes_text
from experiments.judging.alerts.wording import sentence, title, trend_name
from experiments.models import Alert, Member
from experiments.registry.events import AlertConfirmed
from experiments.registry.workers.outbox import TELL_ALERT, send
from experiments.telling.notifying.events import alert_raised

logger = logging.getLogger(__name__)

STILL_NEWS = timedelta(days=1)
MOST_AT_ONCE = 50


def alert_confirmed(event: AlertConfirmed) -> None:
    """Have a worker tell about the alert once it is stored; `tell_waiting` repeats what gets lost."""
    alert_id = event.alert.pk
    if event.alert.told_at is None:
        transaction.on_commit(lambda: send(TELL_ALERT, alert_id), robust=True)


def tell_waiting() -> None:
    """Tell about those whose message was lost, as long as they are news."""
    waiting = _untold().filter(confirmed_at__gt=Now() - STILL_NEWS).order_by("pk")
    for alert_id in waiting.values_list("pk", flat=True)[:MOST_AT_ONCE]:
        tell(alert_id)


def tell(alert_id: int) -> int:
    """Mail one confirmed, untriaged alert to its team's members who asked for it; returns how many mails went out.

    It is marked as told first: whoever does that sends. A mail server that fails in between costs mails, not doubles.
    """
    with transaction.atomic():
        if not _untold().filter(pk=alert_id).update(told_at=Now()):
            return 0
        alert = Alert.objects.select_related("team", "trend__series", "run_before", "run_after").get(pk=alert_id)
        alert_raised(alert)
    members = (
        Member.objects.filter(team=alert.team, mails_alerts=True, user__is_active=True)
        .exclude(user__email="")
        .select_related("user")
    )
    mails = [_mail(alert, member) for member in members]
    if not mails:
        return 0
    try:
        return get_connection().send_messages(mails) or 0
    except OSError as error:  # SMTPException is one
        logger.warning("alert %s: %s mails could not be sent (%s)", alert_id, len(mails), error)
        return 0


def _untold() -> QuerySet[Alert]:
    return Alert.objects.filter(told_at=None, state=Alert.State.CONFIRMED, triage=Alert.Triage.UNTRIAGED, stands=True)


def _mail(alert: Alert, member: Member) -> EmailMessage:
    address = f"{settings.BENCHHUB_URL}/t/{alert.team.slug}"
    causes = f"{causes_text(alert.causes)}\n" if alert.kind == Alert.Kind.CHANGE else ""
    body = (
        f"{sentence(alert)}\n{causes}\n{trend_name(alert.trend)}\n{address}/alerts/{alert.pk}/\n\n"
        f"You get this because you asked for mails about alerts of {alert.team.name}: {address}/alerts/"
    )
    subject = " ".join(f"[BenchHub] {title(alert)}".split())  # a name with a line break would end the headers
    return EmailMessage(subject, body, to=[member.user.email])
