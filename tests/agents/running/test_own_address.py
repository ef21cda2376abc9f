"""Where a server listens is read off its host: an address that is not its own leads to no bind that fails."""

from __future__ import annotations

import socket
import subprocess

import pytest

from agents.remote.ssh import SshSession
from agents.running.own_address import addresses_command, own_address, parse_addresses

TABLES = """\
name 10.0.0.7
name 10.0.0.7
name fe80::1
own 10.0.0.7
own 127.0.0.1
own6 fd000000000000000000000000000002 04 40 00 82     eth0
own no-address
"""


def test_the_kernels_tables_and_the_resolver_are_read() -> None:
    names, own = parse_addresses(TABLES)
    assert [str(name) for name in names] == ["10.0.0.7", "fe80::1"]
    assert {str(one) for one in own} == {"10.0.0.7", "127.0.0.1", "fd00::2"}


def test_the_command_tells_the_addresses_of_this_machine() -> None:
    done = subprocess.run(addresses_command("localhost").argv, capture_output=True, text=True, check=True)
    names, own = parse_addresses(done.stdout)
    assert any(name.is_loopback for name in names)
    assert "127.0.0.1" in {str(one) for one in own}


@pytest.mark.parametrize(
    ("address", "listens"),
    [
        ("127.0.0.2", "127.0.0.2"),
        ("[::1]", "::1"),
        ("localhost", {"127.0.0.1", "::1"}),
        ("192.0.2.77", ""),
        ("no-such-name.invalid", ""),
    ],
)
async def test_only_an_address_of_the_host_is_listened_on(
    session: SshSession, address: str, listens: str | set[str]
) -> None:
    found = await own_address(session, address)
    assert found in (listens if isinstance(listens, set) else {listens})


async def test_an_address_of_an_interface_is_the_hosts_own(session: SshSession) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # asks the routing table; nothing is sent
        mine = probe.getsockname()[0]
    assert await own_address(session, mine) == mine
