"""No host may be where the installation's own database and broker are."""

from __future__ import annotations

from ipaddress import ip_network

import pytest
from pytest_django import Settings

from agents.base.errors import ConnectError
from benchhub.environment import database_settings, network_services
from experiments.models import Host, Member
from experiments.registry.errors import RequestError
from experiments.registry.hosts.denied import denial
from experiments.registry.hosts.host_keys import connect_args
from experiments.registry.hosts.inventory import update_host
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
    assert network_services(over_network, "rediss://:p@10.0.0.7/0") == [("db.example.org", 5432), ("10.0.0.7", 6379)]
    assert network_services(database_settings("postgresql://u@/n?host=/run/pg"), "unix:///run/redis.sock") == []


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
