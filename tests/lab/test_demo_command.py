"""`manage.py demo` allows what its own hosts need, whoever starts it."""

from __future__ import annotations

import os
from ipaddress import ip_network

import pytest
from django.core.management import call_command
from pytest_django import Settings

from benchhub.management.commands import up
from experiments.registry.hosts.denied import denial


def test_the_demonstration_may_have_its_hosts_on_the_loopback(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.BENCHHUB_EMBEDDED = True
    settings.BENCHHUB_OWN_SERVICES = []
    settings.BENCHHUB_HOST_NETWORKS = [ip_network("10.1.0.0/16")]
    monkeypatch.setenv("BENCHHUB_HOST_NETWORKS", "10.1.0.0/16")
    said: list[str] = []
    monkeypatch.setattr(up.Command, "handle", lambda *_, **__: said.append(denial("127.0.0.2", 2222)))
    call_command("demo")
    assert said == [""]
    assert os.environ["BENCHHUB_HOST_NETWORKS"] == "10.1.0.0/16,127.0.0.0/8,::1/128"
