"""Teams are the tenants: every object belongs to one, and every query starts at what a user may see."""

from __future__ import annotations

from typing import Any, Self

from django.conf import settings
from django.contrib.auth.models import AnonymousUser, User
from django.db import models

AnyUser = User | AnonymousUser


class Role(models.TextChoices):
    VIEWER = "viewer"
    LAUNCHER = "launcher"
    EDITOR = "editor"
    ADMIN = "admin"

    def covers(self, needed: Role) -> bool:
        """True when this role may do what `needed` may: viewer < launcher < editor < admin."""
        order = list(Role)
        return order.index(self) >= order.index(needed)


class Team(models.Model):
    slug = models.SlugField(unique=True)
    name = models.CharField(max_length=120)
    next_run_number = models.PositiveIntegerField(default=1)
    is_demo = models.BooleanField(default=False)
    thresholds = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.name


class Member(models.Model):
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="members")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=16, choices=Role.choices, default=Role.VIEWER)
    mails_alerts = models.BooleanField(default=False)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["team", "user"], name="one_membership_per_team")]

    def __str__(self) -> str:
        return f"{self.user} in {self.team} as {self.role}"


class TeamOwnedQuerySet(models.QuerySet[Any]):
    """The one query path: views and API start here, so another team's object is simply not found."""

    def for_team(self, team: Team) -> Self:
        return self.filter(team=team)


class Token(models.Model):
    """An API token `bh_<id>_<secret>`; only a keyed hash of the secret is stored."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="tokens")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=120)
    public_id = models.CharField(max_length=16, unique=True)
    secret_hash = models.CharField(max_length=64)
    scopes = models.JSONField(default=list)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    objects = TeamOwnedQuerySet.as_manager()

    def __str__(self) -> str:
        return f"{self.name} (bh_{self.public_id}_…)"


class IdempotencyRecord(models.Model):
    """What a POST with an `Idempotency-Key` answered: the same key and body get the same answer again."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=255)
    request_sha256 = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField()
    body = models.JSONField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["team", "key"], name="one_answer_per_idempotency_key")]

    def __str__(self) -> str:
        return self.key


class AuditEntry(models.Model):
    """Who changed what, with the values before and after. Append-only."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="audit")
    actor = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    action = models.CharField(max_length=60)
    subject = models.CharField(max_length=200)
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)
    at = models.DateTimeField(auto_now_add=True)

    objects = TeamOwnedQuerySet.as_manager()

    class Meta:
        # The audit page reads one team's newest entries.
        indexes = [models.Index(fields=["team", "-id"], name="audit_newest")]

    def __str__(self) -> str:
        return f"{self.action} {self.subject}"
