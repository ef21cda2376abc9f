"""Who is told what: webhooks, and each message to one of them or to a member's mailbox with its attempts."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models

from experiments.models.teams import Member, Team, TeamOwnedQuerySet


class Webhook(models.Model):
    """An address that is told about the events it asks for.

    `secret` signs; `token` is of the receiver, which asks for one (Grafana). Both are stored sealed.
    """

    class Format(models.TextChoices):
        JSON = "json", "JSON"
        SLACK = "slack", "Slack-compatible"
        GRAFANA = "grafana", "Grafana annotations"

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="webhooks")
    name = models.CharField(max_length=120)
    url = models.CharField(max_length=1000)
    format = models.CharField(max_length=8, choices=Format.choices, default=Format.JSON)
    events = models.JSONField(default=list)
    secret = models.BinaryField(default=bytes, editable=False)
    token = models.BinaryField(default=bytes, editable=False)
    is_active = models.BooleanField(default=True)
    state_reason = models.TextField(blank=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    objects = TeamOwnedQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["team", "name"], name="webhook_name_once_per_team")]

    def __str__(self) -> str:
        return self.name


class Delivery(models.Model):
    """One message on its way, to a webhook or (when that is None) to a member by mail.

    `next_at` is when it is tried next, None once it is over. A worker that takes it moves `next_at` ahead first.
    """

    class State(models.TextChoices):
        WAITING = "waiting"
        DELIVERED = "delivered"
        GIVEN_UP = "given_up", "given up"

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="deliveries")
    webhook = models.ForeignKey(Webhook, null=True, on_delete=models.CASCADE, related_name="deliveries")
    member = models.ForeignKey(Member, null=True, on_delete=models.CASCADE, related_name="deliveries")
    event = models.CharField(max_length=40)
    public_id = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    subject = models.CharField(max_length=200)
    body = models.TextField()
    """Exactly what is sent: the signature is over these characters."""
    state = models.CharField(max_length=10, choices=State.choices, default=State.WAITING)
    tries = models.PositiveSmallIntegerField(default=0)
    next_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = TeamOwnedQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(webhook=None) ^ models.Q(member=None), name="delivery_has_one_recipient"
            )
        ]
        indexes = [
            # What is due, asked every few seconds.
            models.Index(fields=["next_at"], condition=models.Q(next_at__isnull=False), name="delivery_due"),
            # The log of one webhook, newest first.
            models.Index(fields=["webhook", "-id"], name="delivery_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.event} {self.public_id}"


class DeliveryAttempt(models.Model):
    """One try: the status of the answer (None = there was none, `problem` says why) and the beginning of its body."""

    delivery = models.ForeignKey(Delivery, on_delete=models.CASCADE, related_name="attempts")
    at = models.DateTimeField(auto_now_add=True)
    status = models.PositiveSmallIntegerField(null=True)
    duration_ms = models.FloatField()
    problem = models.TextField(blank=True)
    response = models.TextField(blank=True)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.delivery_id}: {self.status or self.problem}"
