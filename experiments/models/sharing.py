"""Share links: something of a team, frozen, for whoever holds the link."""

from __future__ import annotations

from typing import Self

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from experiments.models.teams import Team, TeamOwnedQuerySet


class ShareLinkQuerySet(TeamOwnedQuerySet):
    def live(self) -> Self:
        """Links that still open."""
        return self.filter(Q(expires_at=None) | Q(expires_at__gt=Now()), revoked_at=None)


class ShareLink(models.Model):
    """A link that shows one thing of the team as it was when it was shared, and nothing else.

    `sheet` (`experiments.telling.sharing.sheet`) is all that it ever shows. Of the token only a digest is stored.
    `run_ids`: the runs that it speaks of, which retention keeps for as long as the link lives.
    """

    class Kind(models.TextChoices):
        RUN = "run"
        COMPARISON = "comparison"
        EXPERIMENT = "experiment"
        TREND = "trend"
        SCALING = "scaling"
        SEARCH = "search"
        BISECTION = "bisection"

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="share_links")
    kind = models.CharField(max_length=12, choices=Kind.choices)
    subject = models.CharField(max_length=200)
    token_digest = models.CharField(max_length=64, unique=True)
    sheet = models.JSONField()
    run_ids = ArrayField(models.BigIntegerField(), default=list)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)
    opened_count = models.PositiveIntegerField(default=0)
    last_opened_at = models.DateTimeField(null=True)

    objects = ShareLinkQuerySet.as_manager()

    class Meta:
        # The team's links, newest first.
        indexes = [models.Index(fields=["team", "-id"], name="share_newest")]

    def __str__(self) -> str:
        return self.subject

    @property
    def state(self) -> str:
        """In one word: live, expired or revoked."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= timezone.now() else "live"
