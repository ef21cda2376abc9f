"""No host may be where the installation's own database and broker are."""

from __future__ import annotations

import socket
from ipaddress import ip_address, ip_network
from pathlib import Path

import pytest
from pytest_django import Settings

from agents.base.errors import ConnectError
from benchhub.environment import database_settings, network_services
from experiments.models import Host, Member
from experiments.registry.errors import RequestError
from experiments.registry.hosts import denied
from experiments.registry.hosts import own_networks as own_networks_module
from experiments.registry.hosts.denied import denial
from experiments.registry.hosts.host_keys import connect_args
from experiments.registry.hosts.inventory import update_host
from experiments.registry.hosts.own_networks import own_addresses, own_networks
from experiments.registry.hosts.spellings import spelled
from tests.experiments.conftest import ready_host


@pytest.fixture
def elsewhere(settings: Settings) -> Settings:
    """An installation whose services are on the network."""
    settings.BENCHHUB_OWN_SERVICES = [("10.0.0.5", 5432), ("broker.example.org", 6379)]
    settings.BENCHHUB_DENIED_NETWORKS = [ip_network("169.254.0.0/16")]
    return settings


@pytest.mark.parametrize(
    "address, port, denied",
    [
        ("10.0.0.5", 22, True),
        ("10.0.0.5", 5432, True),
        ("::ffff:10.0.0.5", 22, True),
        ("Broker.example.org.", 22, True),
        ("169.254.169.254", 80, True),
        ("10.0.0.6", 5432, False),
        ("sut-1.example.org", 22, False),
        ("127.0.0.1", 22, False),
        ("", 22, False),
    ],
)
def test_the_own_services_and_denied_networks_are_no_hosts(
    elsewhere: Settings, address: str, port: int, denied: bool
) -> None:
    assert bool(denial(address, port)) is denied


@pytest.mark.parametrize("address, port, denied", [("127.0.0.1", 5432, True), ("127.0.0.1", 22, False)])
def test_on_this_machine_only_the_port_is_the_services_own(
    elsewhere: Settings, address: str, port: int, denied: bool
) -> None:
    elsewhere.BENCHHUB_OWN_SERVICES = [("127.0.0.1", 5432)]
    assert bool(denial(address, port)) is denied


def test_services_on_sockets_have_no_address_to_deny() -> None:
    over_network = database_settings("postgresql://u@db.example.org/n")
    assert network_services([over_network], "rediss://:p@10.0.0.7/0") == [("db.example.org", 5432), ("10.0.0.7", 6379)]
    on_a_socket = database_settings("postgresql://u@/n?host=/run/pg")
    assert network_services([on_a_socket], "unix:///run/redis.sock") == []
    assert network_services([on_a_socket, over_network], "unix:///run/redis.sock") == [("db.example.org", 5432)]


def test_a_host_cannot_be_moved_there_nor_its_load_be_sent_there(elsewhere: Settings, admin: Member) -> None:
    host = ready_host(admin, "sut")
    for field in ("address", "data_address"):
        with pytest.raises(RequestError) as caught:
            update_host(admin, host, **{field: "10.0.0.5"})
        assert caught.value.field == field


def test_a_name_that_leads_there_by_now_is_not_connected_to(elsewhere: Settings, admin: Member) -> None:
    host = ready_host(admin, "sut")
    elsewhere.BENCHHUB_OWN_SERVICES = [("127.0.0.1", 5432)]
    Host.objects.filter(pk=host.pk).update(address="localhost", port=5432)
    host.refresh_from_db()
    with pytest.raises(ConnectError, match="own database"):
        connect_args(host)


@pytest.fixture
def strict(settings: Settings) -> Settings:
    """An installation whose operator has allowed nothing."""
    settings.BENCHHUB_HOST_NETWORKS = []
    settings.BENCHHUB_OWN_SERVICES = []
    return settings


KEPT = (
    "127.0.0.1",
    "127.1",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "0177.0.0.1",
    "017700000001",
    "127.0.0.1.",
    "0",
    "0.0.0.0",
    "localhost",
    "LOCALHOST.",
    "a.localhost",
    "[::1]",
    "::1",
    "0:0:0:0:0:0:0:1",
    "::",
    "::ffff:127.0.0.1",
    "::ffff:7f00:1",
    "::127.0.0.1",
    "64:ff9b::7f00:1",
    "2002:7f00:1::",
    "169.254.169.254",
    "2852039166",
    "0xa9fea9fe",
    "0251.0376.0251.0376",
    "169.254.43518",
    "[::ffff:169.254.169.254]",
    "::ffff:a9fe:a9fe",
    "64:ff9b::a9fe:a9fe",
    "fe80::1",
    "fd00:ec2::254",
    "100.100.100.200",
    "168.63.129.16",
    "224.0.0.1",
    "255.255.255.255",
    "ff02::1",
)


@pytest.mark.parametrize("address", KEPT)
def test_what_only_this_machine_or_its_cloud_should_reach_is_no_host_however_it_is_written(
    strict: Settings, address: str
) -> None:
    why = denial(address, 22)
    assert "BENCHHUB_HOST_NETWORKS" in why
    assert why == denial(address, 5432)  # it says nothing of whether anything answers on a port


@pytest.mark.parametrize(
    "address", ["10.0.0.6", "192.168.1.5", "2001:db8::1", "a.example.org", "3com.example", "1e100.net"]
)
def test_ordinary_addresses_and_names_are_hosts(strict: Settings, address: str) -> None:
    assert denial(address, 22) == ""


def test_a_name_that_leads_there_is_refused_before_each_connection(strict: Settings, admin: Member) -> None:
    strict.BENCHHUB_HOST_NETWORKS = [ip_network("127.0.0.0/8"), ip_network("::1")]
    host = ready_host(admin, "sut")
    strict.BENCHHUB_HOST_NETWORKS = []
    for field in ("address", "data_address"):
        Host.objects.filter(pk=host.pk).update(address="10.0.0.6", data_address="")
        Host.objects.filter(pk=host.pk).update(**{field: socket.gethostname()})
        moved = Host.objects.get(pk=host.pk)
        with pytest.raises(ConnectError, match="no host may be"):
            connect_args(moved)


def test_the_machine_on_which_benchhub_runs_is_no_host(strict: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ip_address("127.0.0.1") in own_addresses()
    monkeypatch.setattr(denied, "own_addresses", lambda: frozenset({ip_address("10.1.2.3")}))
    assert "on which BenchHub runs" in denial("10.1.2.3", 22)
    strict.BENCHHUB_HOST_NETWORKS = [ip_network("10.1.0.0/16")]
    assert denial("10.1.2.3", 22) == ""


def test_the_network_of_the_own_database_is_kept_and_that_of_a_laboratory_is_not(
    strict: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    routes = "Iface Destination Gateway Flags RefCnt Use Metric Mask\n"
    routes += "".join(
        f"eth{n} {there} 00000000 0001 0 0 0 00FFFFFF\n" for n, there in enumerate(("000012AC", "0001A8C0"))
    )
    (tmp_path / "route").write_text(routes)
    monkeypatch.setattr(own_networks_module, "_NET", tmp_path)
    strict.BENCHHUB_OWN_SERVICES = [("172.18.0.3", 5432)]
    assert own_networks([ip_address("172.18.0.3")]) == [ip_network("172.18.0.0/24")]
    assert "network of BenchHub" in denial("172.18.0.9", 22)
    assert denial("192.168.1.9", 22) == ""


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("0x7f.1", "127.0.0.1"),
        ("2852039166", "169.254.169.254"),
        ("[fe80::1%eth0]", "fe80::1"),
        ("x", None),
        ("", None),
    ],
)
def test_an_address_is_what_connecting_to_it_leads_to(text: str, means: str | None) -> None:
    assert spelled(text) == (None if means is None else ip_address(means))
