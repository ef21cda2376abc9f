"""Applications, recipes and workloads: named, and a save is a new immutable version."""

from __future__ import annotations

from typing import Self

from django.conf import settings
from django.db import models

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


class Application(Document):
    class Meta:
        constraints = [models.UniqueConstraint(fields=["team", "name", "version"], name="application_version_once")]


class Recipe(Document):
    class Meta:
        constraints = [models.UniqueConstraint(fields=["team", "name", "version"], name="recipe_version_once")]


class Workload(Document):
    class Meta:
        constraints = [models.UniqueConstraint(fields=["team", "name", "version"], name="workload_version_once")]
