"""Which hosts are one machine: by where they answer, and by what they show over restarts, copies and containers."""

from __future__ import annotations

from typing import Any

import pytest

from agents.facts.access import Access
from experiments.models import Host, Machine, Member
from experiments.registry.hosts.inventory import add_host, update_host
from experiments.registry.hosts.machines import is_news, place_of, recognise, same_machine_as, sisters_of, who_uses
from tests.experiments.conftest import ready_host

Sighting = tuple[str, str, str, str]
"""The host, and the boot, the installation and the firmware that it shows."""


@pytest.mark.parametrize(
    "sightings, together",
    [
        pytest.param([("a", "x", "i", ""), ("b", "x", "i", "")], ["ab"], id="two names of one boot"),
        pytest.param([("a", "x", "i", ""), ("b", "x", "j", "")], ["ab"], id="containers of one kernel"),
        pytest.param([("a", "x", "i", ""), ("b", "y", "i", "")], [], id="copies of one image"),
        pytest.param(
            [("a", "x", "i", "h"), ("b", "y", "i", "k")], [], id="copies of one image on machines of their own"
        ),
        pytest.param(
            [("a", "x", "i", ""), ("b", "x", "i", ""), ("a", "y", "i", "")], ["ab"], id="restarted, seen once"
        ),
        pytest.param(
            [("a", "x", "i", ""), ("b", "x", "j", ""), ("a", "y", "i", ""), ("b", "y", "j", "")],
            ["ab"],
            id="containers of a kernel that was restarted",
        ),
        pytest.param(
            [("a", "x", "i", ""), ("b", "x", "i", ""), ("b", "y", "i", ""), ("a", "x", "i", "")],
            [],
            id="the older boot is alive: machines apart",
        ),
        pytest.param([("a", "x", "i", "h"), ("b", "y", "i", "h")], ["ab"], id="same firmware after a restart"),
        pytest.param(
            [
                ("a", "x", "i", "h"),
                ("b", "y", "i", "h"),
                ("a", "x", "i", "h"),
                ("b", "y", "i", "h"),
                ("a", "z", "i", "h"),
            ],
            [],
            id="boards that say the same, once both were seen alive",
        ),
        pytest.param([("a", "x", "i", ""), ("b", "x", "i", ""), ("b", "y", "k", "")], [], id="moved elsewhere"),
        pytest.param([("a", "x", "i", "h"), ("b", "x", "i", "h"), ("b", "y", "k", "h")], ["ab"], id="installed anew"),
        pytest.param(
            [("a", "x", "i", ""), ("b", "y", "j", ""), ("c", "y", "j", ""), ("a", "y", "j", "")],
            ["abc"],
            id="a name that leads to another machine now",
        ),
        pytest.param([("a", "", "i", "h"), ("b", "", "i", "h")], [], id="hosts that show no boot"),
    ],
)
def test_hosts_are_one_machine(admin: Member, sightings: list[Sighting], together: list[str]) -> None:
    hosts = {name: ready_host(admin, name) for name in dict.fromkeys(name for name, *_ in sightings)}
    for name, boot_id, installation, hardware in sightings:
        shown = Access("bench", boot_id=boot_id, installation=installation, hardware=hardware)
        recognise(hosts[name].pk, shown)
        known = list(Host.objects.order_by("pk").values_list("pk", "machine", "machine__boot_id"))
        assert not is_news(Host.objects.get(pk=hosts[name].pk), shown), "what was just learned is known"
        recognise(hosts[name].pk, shown)
        assert list(Host.objects.order_by("pk").values_list("pk", "machine", "machine__boot_id")) == known
    found: dict[int, str] = {}
    for host in Host.objects.exclude(machine=None).order_by("name"):
        found[host.machine_id] = found.get(host.machine_id, "") + host.name
    assert [names for names in found.values() if len(names) > 1] == together
    assert Machine.objects.count() == len(found), "nothing is kept of machines that no host leads to"


@pytest.mark.parametrize(
    "shown",
    [("y", "i", "h"), ("x", "j", "h"), ("x", "i", ""), ("x", "i", "k")],
    ids=["restarted", "installed anew", "firmware that says nothing", "other firmware"],
)
def test_whatever_a_host_shows_differently_is_news(admin: Member, shown: tuple[str, str, str]) -> None:
    host = ready_host(admin, "a")
    first = Access("bench", boot_id="x", installation="i", hardware="h")
    assert is_news(host, first)
    recognise(host.pk, first)
    host.refresh_from_db()
    boot_id, installation, hardware = shown
    assert is_news(host, Access("bench", boot_id=boot_id, installation=installation, hardware=hardware))
    Machine.objects.update(boot_id="z")  # another name of the machine has shown a newer boot
    assert is_news(Host.objects.get(pk=host.pk), first)


@pytest.mark.parametrize(
    "spellings",
    [
        ("sut.example.org", "SUT.example.org", "sut.example.org."),
        ("10.0.0.7", "::ffff:10.0.0.7", "10.7", "0x0a.0.0.7", "167772167"),
        ("fd00::7", "FD00:0:0:0:0:0:0:7"),
    ],
)
def test_rows_at_one_address_are_one_machine_before_anybody_has_looked(
    admin: Member, other_admin: Member, spellings: tuple[str, ...]
) -> None:
    def add(member: Member, name: str, address: str, port: int = 22, user: str = "bench") -> Host:
        return add_host(member, name=name, address=address, port=port, user=user, roles="both")

    rows = [add(admin, f"host-{at}", address) for at, address in enumerate(spellings)]
    rows.append(add(other_admin, "theirs", spellings[0], user="root"))
    apart = add(admin, "another port", spellings[0], port=2222)
    assert len(set(Host.objects.filter(pk__in=[row.pk for row in rows]).values_list("machine", flat=True))) == 1
    assert Host.objects.get(pk=apart.pk).machine is None
    first = Host.objects.get(pk=rows[0].pk)
    said = same_machine_as(first, sisters_of([first]).of(first.pk))
    assert said == " and ".join([", ".join(row.name for row in rows[1:-1]), "a host of another team"])

    moved = update_host(admin, first, address="10.9.9.9")
    assert sisters_of([moved]).of(moved.pk) == ()


def test_the_way_through_another_jump_host_leads_to_another_place(admin: Member) -> None:
    jumps = [ready_host(admin, f"jump-{at}", address=f"10.0.{at}.1") for at in (1, 2)]
    behind = [
        add_host(admin, name=f"h{at}", address="192.168.0.5", port=22, user="bench", roles="both", jump=jump)
        for at, jump in enumerate(jumps)
    ]
    assert len({place_of(host) for host in behind}) == 2
    assert {host.machine for host in Host.objects.filter(name__startswith="h")} == {None}


def test_a_name_is_looked_up_when_there_is_time_for_it(admin: Member) -> None:
    by_name, by_number = (ready_host(admin, name, address=name) for name in ("localhost", "127.0.0.1"))
    assert place_of(by_name) == "localhost 22"
    assert place_of(by_name, look_up=True) in (place_of(by_number), "localhost 22"), "it may have two addresses"


def test_a_new_address_forgets_what_the_old_one_has_shown(admin: Member) -> None:
    a, b = ready_host(admin, "a"), ready_host(admin, "b", address="10.0.0.2")
    for host in (a, b):
        recognise(host.pk, Access("bench", boot_id="x"))
    update_host(admin, b, address="10.0.0.3")
    moved = Host.objects.get(pk=b.pk)
    assert (moved.machine, moved.boot_id) == (None, "")


def test_a_sister_in_use_or_dirty_is_told_without_names_of_other_teams(
    admin: Member, other_admin: Member, stock: dict[str, Any]
) -> None:
    mine, theirs = ready_host(admin, "mine"), ready_host(other_admin, "secret name")
    for host in (mine, theirs):
        recognise(host.pk, Access("bench", boot_id="x"))
    mine.refresh_from_db()
    assert who_uses(mine, sisters_of([mine]).of(mine.pk)) == ""
    Host.objects.filter(pk=theirs.pk).update(state="dirty", state_reason="secret reason")
    assert who_uses(mine, sisters_of([mine]).of(mine.pk)) == (
        "mine is the same machine as a host of another team, which is dirty"
    )
