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
    """A tenant, with what it may use and how long it keeps its runs.

    `retention_days`: after how many days a run that nothing exempts goes to the trash; None = never. The quotas are set
    by staff. `link_templates`: links to other tools, `name` and `url` each (`registry.teams.link_templates`).
    `runs_on_day` counts the runs asked for on `runs_day`; `artifact_bytes` is as last measured.
    """

    slug = models.SlugField(unique=True)
    name = models.CharField(max_length=120)
    next_run_number = models.PositiveIntegerField(default=1)
    is_demo = models.BooleanField(default=False)
    thresholds = models.JSONField(default=dict, blank=True)
    link_templates = models.JSONField(default=list, blank=True)
    requires_second_factor = models.BooleanField(default=False)
    retention_days = models.PositiveIntegerField(null=True, blank=True)
    quota_artifact_bytes = models.BigIntegerField(default=50 * 2**30)
    quota_runs_per_day = models.PositiveIntegerField(default=100_000)
    quota_queued_runs = models.PositiveIntegerField(default=5000)
    quota_hosts = models.PositiveIntegerField(default=200)
    quota_live_runs = models.PositiveIntegerField(default=200)
    runs_day = models.DateField(null=True)
    runs_on_day = models.PositiveIntegerField(default=0)
    artifact_bytes = models.BigIntegerField(default=0)
    measured_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.name


class Member(models.Model):
    """Who belongs to a team.

    `is_service`: not a person but an identity of the team that tokens act for; nobody can sign in as it.
    `by_group`: made by a group of the identity provider, and ended when the person leaves that group.
    """

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="members")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=16, choices=Role.choices, default=Role.VIEWER)
    mails_alerts = models.BooleanField(default=False)
    mails_verdicts = models.BooleanField(default=False)
    mails_failed_runs = models.BooleanField(default=False)
    is_service = models.BooleanField(default=False)
    by_group = models.BooleanField(default=False)
    default_view = models.ForeignKey(
        "experiments.SavedView", null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    hides_first_steps = models.BooleanField(default=False)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["team", "user"], name="one_membership_per_team")]

    def __str__(self) -> str:
        return f"{self.user} in {self.team} as {self.role}"


class TeamOwnedQuerySet(models.QuerySet[Any]):
    """The one query path: views and API start here, so another team's object is simply not found."""

    def for_team(self, team: Team) -> Self:
        return self.filter(team=team)

    def newest_page(self, before: int | None, most: int) -> tuple[list[Any], int | None]:
        """At most so many rows, the newest first, of ids below `before`; and what `before` is for the next page."""
        found = self if before is None else self.filter(pk__lt=before)
        rows = list(found.order_by("-pk")[: most + 1])
        return rows[:most], rows[most - 1].pk if len(rows) > most else None


class Token(models.Model):
    """An API token `bh_<id>_<secret>`, which acts for `owner`; only a keyed hash of the secret is stored.

    `site`: of a token with the scope `work`, whose runs it may work on; None of all others.
    """

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="tokens")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=120)
    public_id = models.CharField(max_length=16, unique=True)
    secret_hash = models.CharField(max_length=64)
    scopes = models.JSONField(default=list)
    site = models.ForeignKey("experiments.Site", null=True, blank=True, on_delete=models.CASCADE, related_name="+")
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


class AppendOnlyQuerySet(TeamOwnedQuerySet):
    """Entries are written once. They go only with their team."""

    def update(self, **_values: Any) -> int:
        raise TypeError("The audit trail is append-only.")

    def delete(self) -> tuple[int, dict[str, int]]:
        raise TypeError("The audit trail is append-only.")


class AuditEntry(models.Model):
    """Who changed what, with the values before and after. Append-only."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="audit")
    actor = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    action = models.CharField(max_length=60)
    subject = models.CharField(max_length=200)
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)
    at = models.DateTimeField(auto_now_add=True)

    objects = AppendOnlyQuerySet.as_manager()

    class Meta:
        # The audit page reads one team's newest entries.
        indexes = [models.Index(fields=["team", "-id"], name="audit_newest")]

    def __str__(self) -> str:
        return f"{self.action} {self.subject}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            raise TypeError("The audit trail is append-only.")
        super().save(*args, **kwargs)

    def delete(self, *_args: Any, **_kwargs: Any) -> tuple[int, dict[str, int]]:
        raise TypeError("The audit trail is append-only.")
