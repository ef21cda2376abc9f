"""`manage.py lab` gives a newcomer two hosts, and takes them away again."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from experiments.models import Host, Member
from experiments.registry.hosts.inventory import add_host
from tests.experiments.conftest import admin, make_member, team
from tests.lab.conftest import require_namespaces

__all__ = ["admin", "make_member", "team"]

Manage = Callable[..., str]


@pytest.fixture
def manage(settings: Any, tmp_path: Path) -> Iterator[Manage]:
    """`manage.py lab ...` with a data directory of its own; returns what it printed."""
    settings.BENCHHUB_DATA_DIR = tmp_path

    def run(*words: str) -> str:
        out = io.StringIO()
        call_command("lab", *words, stdout=out)
        return out.getvalue()

    yield run
    run("down", "--purge")


@pytest.mark.lab
def test_hosts_are_broken_and_mended_from_the_command_line(manage: Manage, tmp_path: Path) -> None:
    require_namespaces()

    said = manage("up", "--cpus", "4")

    assert f"key      {tmp_path}/lab/client_key" in said
    assert said.count("SHA256:") == 2
    assert "Next: add the hosts under Hosts" in said
    assert manage("cut", "sut", "--half-open") == "sut: it hears everybody, and nobody hears it.\n"
    assert "broken: management link, from sut" in manage("status")
    manage("heal", "sut")
    manage("crash", "driver")
    assert "broken: management link, from sut" not in (status := manage("status"))
    assert "driver   off" in status
    manage("boot", "driver")
    before = manage("status")
    manage("reboot", "driver")
    assert "broken" not in manage("status")
    assert manage("status") != before
    manage("exec", "sut", "sh", "-c", "[ $(cat /sys/devices/system/cpu/present) = 0-3 ]")
    with pytest.raises(CommandError, match="sh ended with 3"):
        manage("exec", "sut", "--", "sh", "-c", "exit 3")
    with pytest.raises(CommandError, match="There is no host other; there are sut, driver"):
        manage("cut", "other")
    assert "is down" in manage("down")
    assert "The lab is down" in manage("status")


@pytest.mark.lab
@pytest.mark.django_db
def test_registered_hosts_are_ready_for_runs(manage: Manage, admin: Member) -> None:
    require_namespaces()

    said = manage("up", "--register", admin.team.slug)

    assert "sut and driver are hosts of the team" in said
    sut, driver = Host.objects.for_team(admin.team).order_by("-name")
    assert (sut.state, driver.state) == (Host.State.READY, Host.State.READY)
    assert (sut.roles, driver.roles) == (Host.Roles.SUT, Host.Roles.DRIVER)
    assert sut.data_address != sut.address
    manage("down", "--purge")
    manage("up", "--register", admin.team.slug)
    again = Host.objects.for_team(admin.team).get(name="sut")
    assert again.host_key != sut.host_key
    assert again.public_key != sut.public_key
    assert again.state == Host.State.READY


@pytest.mark.django_db
def test_another_host_of_the_same_name_stays_what_it_is(manage: Manage, admin: Member) -> None:
    theirs = add_host(admin, name="sut", address="bench-1.example.org", port=22, user="root", roles=Host.Roles.SUT)

    for _ in range(2):
        assert "lab-sut and driver are hosts of the team" in manage("up", "--loopback", "--register", admin.team.slug)

    kept = Host.objects.for_team(admin.team).get(name="sut")
    assert (kept.address, kept.public_key) == ("bench-1.example.org", theirs.public_key)
    assert set(Host.objects.for_team(admin.team).values_list("name", flat=True)) == {"sut", "lab-sut", "driver"}


@pytest.mark.django_db
def test_an_unknown_team_is_told(manage: Manage, admin: Member) -> None:
    with pytest.raises(CommandError, match=f"no team other with an administrator. Teams: {admin.team.slug}"):
        manage("up", "--loopback", "--register", "other")


def test_without_namespaces_there_are_plain_loopback_hosts(manage: Manage) -> None:
    said = manage("up", "--loopback")

    assert "Plain sshd on loopback addresses" in said
    assert manage("up", "--loopback") == said
    assert manage("status").count("(loopback)") == 2
    with pytest.raises(CommandError, match="There is no lab"):
        manage("cut", "sut")
    manage("down")
    assert "There is no lab" in manage("status")
