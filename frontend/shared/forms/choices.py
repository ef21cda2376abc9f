"""What a team can choose from in a form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.db.models import Q

from agents.steps.recipe import RecipeDocument
from experiments.judging.evidence.roles import names_of_members
from experiments.models import Application, Host, Recipe, Team, Workload
from experiments.models.documents import Document
from experiments.models.teams import TeamOwnedQuerySet
from experiments.registry.documents.contents import content_of
from experiments.registry.metrics.own_metrics import metrics_of
from experiments.registry.metrics.vocabulary import label_of
from frontend.shared.query import id_in

PARTS = {"sut": Host.Roles.SUT, "driver": Host.Roles.DRIVER, "drivers": Host.Roles.DRIVER}
"""Fields that choose hosts, and the role that those must have."""
DOCUMENTS = (
    ("application", "applications", "an application"),
    ("recipe", "recipes", "a recipe"),
    ("workload", "workloads", "a workload"),
)
"""Each kind of document with its page and words for it."""
HOST_FIELDS = ("sut", "other_sut", "drivers")
"""The hosts that an installed template asks for."""


class TeamChoices:
    """What a team can choose from, read once per page however many rows it has."""

    models: Mapping[str, type[Document]] = {"application": Application, "recipe": Recipe, "workload": Workload}

    def __init__(self, team: Team) -> None:
        self.team = team
        self._options: dict[str, list[tuple[str, str]]] = {}
        self._recipes: dict[str, RecipeDocument | None] = {}
        self._roles: dict[str, tuple[str, ...]] = {}
        self._hosts: list[Host] | None = None
        self._metrics: list[tuple[str, str]] | None = None
        self._of_members: list[tuple[str, str]] | None = None

    def fill(self, field: forms.ModelChoiceField[Any], name: str, *chosen: str) -> None:
        """Offer the newest versions and, beside them, the chosen older one; accept every version of the team."""
        field.queryset = self._all(name)
        options = self._hosts_for(PARTS[name]) if name in PARTS else self._documents(name)
        if missing := [pk for one in chosen if one not in dict(options) and (pk := id_in(one)) is not None]:
            options = options + [(str(item.pk), str(item)) for item in self._all(name).filter(pk__in=missing)]
        several = isinstance(field, forms.ModelMultipleChoiceField)
        field.choices = options if several else [("", field.empty_label or ""), *options]
        if field.required and len(options) == 1:  # nobody is asked what can only be answered in one way
            field.initial = [options[0][0]] if several else options[0][0]

    def recipe_document(self, chosen: str) -> RecipeDocument | None:
        """The chosen recipe's document; None when nothing is chosen."""
        if chosen not in self._recipes:
            recipe = Recipe.objects.for_team(self.team).filter(pk=id_in(chosen)).first()
            self._recipes[chosen] = content_of(recipe) if recipe else None
        return self._recipes[chosen]

    def member_roles(self, chosen: str) -> tuple[str, ...]:
        """The roles of the chosen application's further members; () for a single server, and when nothing is chosen."""
        if chosen not in self._roles:
            application = Application.objects.for_team(self.team).filter(pk=id_in(chosen)).first()
            self._roles[chosen] = content_of(application).roles if application else ()
        return self._roles[chosen]

    def metrics(self) -> list[tuple[str, str]]:
        """What can decide an experiment: the known metrics, then the team's own."""
        if self._metrics is None:
            self._metrics = [(name, metric.label) for name, metric in metrics_of(self.team.pk).items()]
        return self._metrics

    def metrics_of_members(self) -> list[tuple[str, str]]:
        """The figures of the members of the team's systems, in their newest versions."""
        if self._of_members is None:
            latest = Application.objects.for_team(self.team).newest_versions().filter(body__has_key="members")
            names = (name for one in latest for name in names_of_members(content_of(one)))
            self._of_members = [(name, label_of(name)) for name in dict.fromkeys(names)]
        return self._of_members

    def missing(self) -> list[tuple[str, str]]:
        """What the team has none of and a run needs: the page where one is made, and what to call it."""
        lacks = [(page, words) for name, page, words in DOCUMENTS if not self._documents(name)]
        no_sut, no_driver = (not self._hosts_for(role) for role in (Host.Roles.SUT, Host.Roles.DRIVER))
        if no_sut and no_driver:
            lacks.append(("hosts", "a host"))
        elif no_sut or no_driver:
            lacks.append(("hosts", f"a host with the role {'SUT' if no_sut else 'driver'}"))
        return lacks

    def _all(self, name: str) -> TeamOwnedQuerySet:
        if name in self.models:
            return self.models[name].objects.for_team(self.team)
        return (
            Host.objects.for_team(self.team)
            .filter(Q(roles=PARTS[name]) | Q(roles=Host.Roles.BOTH))
            .select_related("profile", "leased_by")
        )

    def _documents(self, name: str) -> list[tuple[str, str]]:
        if name not in self._options:
            latest = self.models[name].objects.for_team(self.team).newest_versions().only("id", "name", "version")
            self._options[name] = [(str(item.pk), str(item)) for item in latest]
        return self._options[name]

    def suts_by_name(self) -> dict[str, str]:
        """The key of each host that may be a server, by its name."""
        return {host.name: str(host.pk) for host in self._team_hosts() if host.roles in (PARTS["sut"], Host.Roles.BOTH)}

    def _hosts_for(self, name: str) -> list[tuple[str, str]]:
        return [
            (str(host.pk), host.name if host.state == Host.State.READY else f"{host.name} ({host.state})")
            for host in self._team_hosts()
            if host.roles in (name, Host.Roles.BOTH)
        ]

    def _team_hosts(self) -> list[Host]:
        if self._hosts is None:
            self._hosts = list(Host.objects.for_team(self.team).only("id", "name", "state", "roles").order_by("name"))
        return self._hosts
