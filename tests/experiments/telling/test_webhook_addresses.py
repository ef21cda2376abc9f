"""Which addresses a webhook may have."""

from __future__ import annotations

import pytest

from experiments.registry.errors import RequestError
from experiments.registry.outgoing.addresses import check_url, refused, target_of
from experiments.registry.outgoing.request import post


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1",
        "255.255.255.255", "::1", "::", "fe80::1%eth0", "fd00::1", "::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:a00:1::1",
        "ff02::1", "::127.0.0.1", "::ffff:0:127.0.0.1", "fec0::1", "5f00::1", "3fff::1",
    ],
)  # fmt: skip
def test_an_address_that_is_not_public_is_refused(address: str) -> None:
    assert f"leads to {address}" in refused(["93.184.216.34", address])
    assert refused(["93.184.216.34", "2606:2800:220:1::1"]) == ""
    assert refused([]) == "The name leads to no address."


@pytest.mark.parametrize(
    "url",
    [
        "http://hooks.example.com/", "ftp://hooks.example.com/", "https://", "https:///x", "hooks.example.com",
        "https://user:secret@hooks.example.com/", "https://hooks.example.com/#x", "https://hooks.example.com:99999/",
        "https://hooks.example.com/\r\nX: y", "https://h\u00f6oks.example.com/", "https://[::1",
        "https://a.b/" + "x" * 1000,
    ],
)  # fmt: skip
def test_what_is_no_https_url_is_refused(url: str) -> None:
    with pytest.raises(RequestError) as refusal:
        target_of(url)
    assert refusal.value.field == "url"


@pytest.mark.parametrize("host", ["169.254.169.254", "127.0.0.1", "[::1]", "10.0.0.1"])
def test_an_address_that_is_never_reached_is_refused_when_it_is_entered(host: str) -> None:
    with pytest.raises(RequestError, match="not public"):
        check_url(f"https://{host}/hook")
    check_url("https://1.1.1.1/hook")
    check_url("https://hooks.example.com/hook")


@pytest.mark.parametrize("host", ["2130706433", "0x7f.1", "0177.0.0.1", "127.1", "0", "localhost"])
def test_an_address_in_disguise_is_found_out_before_the_connection(host: str) -> None:
    answer = post(f"https://{host}/", b"{}", {})
    assert answer.status is None
    assert "not public" in answer.problem


@pytest.mark.parametrize(
    "host", ["2852039166", "0x7f.1", "0", "127.1", "0177.0.0.1", "134744072", "0x08080808", "8.8.8.8."]
)
def test_an_address_in_disguise_is_refused_when_it_is_entered_wherever_it_leads(host: str) -> None:
    with pytest.raises(RequestError, match="ordinary form") as refusal:
        check_url(f"https://{host}/hook")
    assert refusal.value.field == "url"


@pytest.mark.parametrize("host", ["a" * 64 + ".example.com", "a..example.com", ".example.com"])
def test_what_is_no_name_of_a_host_is_a_try_that_failed(host: str) -> None:
    answer = post(f"https://{host}/", b"{}", {})
    assert answer.status is None
    assert answer.problem == f"The name {host} is no name of a host."
