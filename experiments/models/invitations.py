"""Invitations: how a person who is asked into a team gets there."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from experiments.models.teams import Role, Team, TeamOwnedQuerySet


class Invitation(models.Model):
    """One seat in a team for whoever has the link; only a hash of the link's secret is stored.

    `email` is where the link was sent, empty for a link that the admin hands over by themselves.
    """

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="invitations")
    email = models.EmailField(blank=True)
    role = models.CharField(max_length=16, choices=Role.choices)
    secret_hash = models.CharField(max_length=64, unique=True)
    invited_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    sent_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField()
    accepted_at = models.DateTimeField(null=True)
    accepted_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    revoked_at = models.DateTimeField(null=True)

    objects = TeamOwnedQuerySet.as_manager()

    def __str__(self) -> str:
        return self.email or f"link {self.pk}"
