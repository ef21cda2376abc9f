"""Secrets in configuration files and on command lines are not recorded."""

from __future__ import annotations

import pytest

from agents.redaction import HIDDEN, masked, masked_outcome
from agents.steps.base import SettingOutcome


@pytest.mark.parametrize(
    "path, value, shown",
    [
        ("tomcat.server_xml.Server/Service/Connector@keystorePass", "x", HIDDEN),
        (
            "tomcat.server_xml.Server/Service/Connector@keystorePassword",
            "x",
            HIDDEN,
        ),
        (
            "process.arguments[7]",
            "-Djavax.net.ssl.keyStorePassword=changeit",
            f"-Djavax.net.ssl.keyStorePassword={HIDDEN}",
        ),
        (
            "process.environment.JDK_JAVA_OPTIONS",
            "-Xmx1g -Dapp.secret=abc -Da=b",
            f"-Xmx1g -Dapp.secret={HIDDEN} -Da=b",
        ),
        ("tomcat.server_xml.Server/Service/Connector@maxThreads", "7", "7"),
        ("sysctl.net.core.somaxconn", "4096", "4096"),
        ("jvm.flags.MaxHeapSize", "268435456", "268435456"),
    ],
)
def test_a_value_is_hidden_by_its_name_and_nothing_else_is(path: str, value: str, shown: str) -> None:
    assert masked(path, value) == shown


def test_the_outcome_of_a_secret_setting_keeps_what_became_of_it() -> None:
    outcome = SettingOutcome("Server/Resource@password", "new", None, "new", "applied")
    assert masked_outcome(outcome) == SettingOutcome("Server/Resource@password", HIDDEN, None, HIDDEN, "applied")
