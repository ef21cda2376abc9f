"""Applications, recipes and workloads: named, and a save is a new immutable version."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Self

from django.conf import settings
from django.db import models

from experiments.models.key_order import in_order, keys_of
from experiments.models.teams import Team, TeamOwnedQuerySet


class DocumentQuerySet(TeamOwnedQuerySet):
    def newest_versions(self) -> Self:
        """The newest version of each name, archived ones and those for one run left out."""
        meant = self.filter(archived=False, one_off=False)
        newest = meant.order_by("team_id", "name", "-version").distinct("team_id", "name")
        return self.filter(pk__in=newest.values("pk")).order_by("name")

    def archived_names(self) -> Self:
        """The newest version of each name that is archived as a whole: none of its versions is in the lists."""
        newest = self.filter(one_off=False).order_by("team_id", "name", "-version").distinct("team_id", "name")
        return self.filter(pk__in=newest.values("pk"), archived=True).order_by("name")


class Document(models.Model):
    """One version. `body` is a document of `agents` as JSON; `registry.documents.contents` reads it."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE)
    name = models.CharField(max_length=120)
    version = models.PositiveIntegerField()
    body = models.JSONField()
    key_order = models.JSONField(default=list, editable=False)
    """The keys of the body in the order in which they were written; none of versions from before it was kept."""
    note = models.CharField(max_length=400, blank=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    archived = models.BooleanField(default=False)
    is_demo = models.BooleanField(default=False)
    one_off = models.BooleanField(default=False)
    """Made from a run's changed specification: for that run and its repetitions, not what the team goes on with."""

    objects = DocumentQuerySet.as_manager()

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.name} v{self.version}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        self.key_order = keys_of(self.body)
        super().save(*args, **kwargs)

    @classmethod
    def from_db(cls, db: str | None, field_names: Collection[str], values: Collection[Any], **more: Any) -> Self:
        document = super().from_db(db, field_names, values, **more)
        if {"body", "key_order"} <= set(field_names):
            document.body = in_order(document.body, document.key_order)
        return document


class Application(Document):
    class Meta:
        constraints = [models.UniqueConstraint(fields=["team", "name", "version"], name="application_version_once")]


class Recipe(Document):
    class Meta:
        constraints = [models.UniqueConstraint(fields=["team", "name", "version"], name="recipe_version_once")]


class Workload(Document):
    class Meta:
        constraints = [models.UniqueConstraint(fields=["team", "name", "version"], name="workload_version_once")]
