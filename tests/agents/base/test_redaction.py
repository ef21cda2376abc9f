"""Secrets in configuration files and on command lines are not recorded."""

from __future__ import annotations

import pytest

from agents.base.redaction import HIDDEN, Redactor, masked, masked_outcome, without_secrets
from agents.base.setting_outcome import SettingOutcome


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


KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nhunter22hunter22\nhunter22\n-----END OPENSSH PRIVATE KEY-----"
TEXTS = (
    "password=hunter22 -Xmx1g",
    '{"password": "hunter22 hunter22", "port": 1}',
    '{\\"db_password\\": \\"hunter22\\", \\"port\\": 1}',
    "'client_secret' : 'hunter22'",
    '<Connector keystorePass="hunter22" port="1"/>',
    "<password>hunter22</password>",
    "java -jar x --db-password hunter22 -v",
    "spring.datasource.password: hunter22",
    "-H 'Authorization: Token hunter22' http://sut/",
    "GET /x?access_token=hunter22",
    "redis://user:hunter22@redis:6379/0 is away",
    "token bh_a1b2c3_hunter22 refused",
    f"read {KEY} there",
)


@pytest.mark.parametrize("text", TEXTS)
def test_a_secret_is_hidden_wherever_its_text_is_cut_into_pieces(text: str) -> None:
    whole = without_secrets(f"first\n{text}\nlast")
    assert "hunter" not in whole
    assert whole.startswith("first\n")
    assert whole.endswith("\nlast")
    for border in range(len(text) + 1):
        redactor = Redactor()
        pieces = redactor.feed(f"first\n{text[:border]}"), redactor.feed(f"{text[border:]}\nlast"), redactor.close()
        assert "".join(pieces) == whole


@pytest.mark.parametrize("text", TEXTS)
def test_a_secret_within_a_line_that_never_ends_is_hidden_at_each_border(text: str) -> None:
    before, after = "x" * 1100 + " ", " " + "y" * 1100
    whole = without_secrets(before + text + after)
    assert "hunter" not in whole
    for border in range(len(text) + 1):
        redactor = Redactor(most_held_chars=1024)
        pieces = redactor.feed(before + text[:border]), redactor.feed(text[border:] + after), redactor.close()
        assert "".join(pieces) == whole


def test_a_secret_longer_than_what_is_held_is_hidden_and_not_kept() -> None:
    redactor = Redactor(most_held_chars=1024)
    pieces = [redactor.feed(piece) for piece in ("api_key=", *["hunter22" * 100] * 20, " end")]
    assert "".join([*pieces, redactor.close()]) == f"api_key={HIDDEN} end"


def test_the_end_of_a_key_whose_beginning_is_not_there_is_hidden() -> None:
    assert without_secrets(KEY[45:] + "\nServer started") == f"{HIDDEN}\nServer started"


@pytest.mark.parametrize(
    "text, shown",
    [
        ('{"access_token_ms": {"avg": 1.5, "values": [1]}}',) * 2,
        ('{"secret_checks": 12.5, "id_token_ok": true, "passwords": [2]}',) * 2,
        ('{"password": 1234}', f'{{"password": {HIDDEN}}}'),
        ("1,2,expected Set-Cookie: a=b; c=d,200,true", f"1,2,expected Set-Cookie: {HIDDEN},200,true"),
        ("1,2,GET /oauth/token,200,secret > 5 ms,true",) * 2,
        ("1,2,GET /x?api_key=abc,200,true", f"1,2,GET /x?api_key={HIDDEN},200,true"),
        ("<queryString>client_secret=abc</queryString>", f"<queryString>client_secret={HIDDEN}</queryString>"),
        ("<requestHeader>Cookie: a=b</requestHeader>", f"<requestHeader>Cookie: {HIDDEN}</requestHeader>"),
    ],
)
def test_what_a_tool_wrote_keeps_its_form_and_its_figures(text: str, shown: str) -> None:
    assert without_secrets(text) == shown
