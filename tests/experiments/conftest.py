"""Teams, members, hosts and documents for the tests of the use cases and of the API."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from django.contrib.auth import get_user_model

from agents.remote.address import new_key_pair
from experiments.models import Application, Host, Member, Recipe, Role, Team, Workload
from experiments.registry.documents.versions import save_version
from experiments.registry.hosts.host_keys import key_row
from experiments.registry.hosts.inventory import check_state
from experiments.registry.hosts.keys import seal
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
    """A host as adding it, a connection test and the approval of its key leave it; thousands of tests want two."""
    private_key, public_key = _key_pair()
    given = {"address": "127.0.0.1", "port": 22, "user": "bench", "roles": "both", **more}
    asked = check_state("pending", "Waiting for a worker.")
    known = {"host_key": HOST_KEY, "state": Host.State.READY, "last_check": asked, "public_key": public_key}
    host = Host.objects.create(team=member.team, name=name, **known, **given)
    host.private_key = seal(private_key, row=key_row(host))
    host.save(update_fields=["private_key"])
    return host


@cache
def _key_pair() -> tuple[str, str]:
    return new_key_pair("benchhub test")


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
