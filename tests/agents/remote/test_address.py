from __future__ import annotations

import pytest

from agents.remote.address import plain_address


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ("sut.example.com", "sut.example.com"),
        ("SUT.Example.COM.", "sut.example.com"),
        (" 10.0.0.7 ", "10.0.0.7"),
        ("[::1]", "::1"),
        ("[2001:DB8:0::0:7]", "2001:db8::7"),
        ("", ""),
    ],
)
def test_an_address_is_stored_in_one_way(written: str, stored: str) -> None:
    assert plain_address(written) == stored
    assert plain_address(stored) == stored


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("fe80::1%eth0", "each machine names its own"),
        ("fe80::1", "is a link-local address"),
        ("[::1]:22", "a port is given apart"),
        ("sut:22", "a port is given apart"),
        ("[sut]x", "brackets belong around a whole IPv6 address"),
    ],
)
def test_an_address_that_leads_elsewhere_for_others_is_refused_in_words(written: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        plain_address(written)
