"""Teams, members, hosts and documents for the tests of the use cases and of the API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth import get_user_model

from experiments.documents.versions import save_version
from experiments.hosts.inventory import add_host, approve_key
from experiments.models import Application, Host, Member, Recipe, Role, Team, Workload
from tests.experiments.trend_runs import AddRun, runs_of

HOST_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIC1xFkK3JrBEAWJ8qfusMvXIUw+xkDzE2wIlhxeSGkiB"
HOST_KEY_FINGERPRINT = "SHA256:XKBAIGz/6BY1lFd8Pff9YrAyQqBAIuMQhvvhjEQjbTk"

APPLICATION = {"server": {"kind": "tomcat", "home": "/opt/tomcat"}}
RECIPE = {
    "parameters": {"nofile": {"type": "int", "default": 65535, "minimum": 1024}},
    "steps": [{"kind": "limits", "nofile": "${nofile}"}],
}
WORKLOAD = {
    "driver": {"kind": "wrk", "connections": 16, "threads": 2},
    "phases": [{"name": "load", "kind": "measure", "duration_s": 10}],
}

MakeMember = Callable[..., Member]


@pytest.fixture
def team(db: None) -> Team:
    return Team.objects.create(slug="perf", name="Performance")


@pytest.fixture
def make_member(db: None) -> MakeMember:
    def make(team: Team, role: Role = Role.ADMIN, username: str = "") -> Member:
        users = get_user_model().objects
        user = users.create_user(username or f"{role}-{team.slug}-{users.count()}", password="correct horse battery")
        return Member.objects.create(team=team, user=user, role=role)

    return make


@pytest.fixture
def admin(team: Team, make_member: MakeMember) -> Member:
    return make_member(team, Role.ADMIN, "ada")


@pytest.fixture
def other_admin(make_member: MakeMember) -> Member:
    return make_member(Team.objects.create(slug="others", name="Others"), Role.ADMIN, "oscar")


def ready_host(member: Member, name: str, **more: Any) -> Host:
    """A host whose key is approved, as after a connection test."""
    given = {"address": "127.0.0.1", "port": 22, "user": "bench", "roles": "both", **more}
    host = add_host(member, name=name, **given)
    Host.objects.filter(pk=host.pk).update(offered_host_key=HOST_KEY)
    approve_key(member, host, HOST_KEY_FINGERPRINT)
    return host


@pytest.fixture
def stock(admin: Member) -> dict[str, Any]:
    """What a team needs for a run: two hosts, an application, a recipe and a workload."""
    return {
        "sut": ready_host(admin, "sut-1", roles="sut"),
        "drivers": (ready_host(admin, "driver-1", roles="driver"),),
        "application": save_version(admin, Application, "tomcat", APPLICATION),
        "recipe": save_version(admin, Recipe, "limits", RECIPE),
        "workload": save_version(admin, Workload, "home page", WORKLOAD),
    }


@pytest.fixture
def add_run(admin: Member, stock: dict[str, Any]) -> AddRun:
    return runs_of(admin, stock)
