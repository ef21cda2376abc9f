"""The read side of webhooks and their deliveries; pages and API alike."""

from __future__ import annotations

from django.db.models import Prefetch

from experiments.models import Delivery, DeliveryAttempt, Member, Role, Webhook
from experiments.models.teams import TeamOwnedQuerySet
from experiments.registry.errors import NotFound
from experiments.registry.teams.access import require


def webhooks_of(member: Member) -> list[Webhook]:
    """By name. Only for admins: the address of a chat's webhook is a secret."""
    require(member, Role.ADMIN)
    return list(Webhook.objects.for_team(member.team).select_related("created_by").order_by("name"))


def find_webhook(member: Member, webhook_id: int) -> Webhook:
    found: Webhook | None = (
        Webhook.objects.for_team(member.team).select_related("team", "created_by").filter(pk=webhook_id).first()
    )
    if found is None:
        raise NotFound(f"There is no webhook {webhook_id}.")
    require(member, Role.ADMIN)
    return found


def deliveries_of(webhook: Webhook) -> TeamOwnedQuerySet:
    """What was sent to it or waits, with its attempts."""
    found: TeamOwnedQuerySet = Delivery.objects.filter(webhook=webhook)
    return found.prefetch_related(Prefetch("attempts", DeliveryAttempt.objects.order_by("id")))


def find_delivery(member: Member, webhook_id: int, delivery_id: int) -> Delivery:
    webhook = find_webhook(member, webhook_id)
    found: Delivery | None = webhook.deliveries.filter(pk=delivery_id).first()
    if found is None:
        raise NotFound(f"There is no delivery {delivery_id}.")
    return found
