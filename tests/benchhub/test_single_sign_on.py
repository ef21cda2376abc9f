"""Sign-in through a real OpenID Connect provider, and with SAML assertions that the test signs itself."""

from __future__ import annotations

import base64
import html
import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from allauth.account.models import EmailAddress
from allauth.socialaccount.models import SocialAccount
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID
from django.contrib.auth import get_user_model
from django.core.exceptions import ImproperlyConfigured
from django.test import Client
from onelogin.saml2.utils import OneLogin_Saml2_Utils
from pytest_django import Settings

from benchhub import single_sign_on
from experiments.models import Member, Role, Team
from experiments.registry.teams.group_rules import read_rules
from experiments.registry.teams.invitations import invite
from tests.experiments.conftest import admin, make_member, team

__all__ = ["admin", "make_member", "team"]  # fixtures

PEOPLE = [
    {
        "sub": "g-1",
        "preferred_username": "grace",
        "email": "grace@example.org",
        "email_verified": True,
        "groups": ["perf-leads"],
    },
    {"sub": "e-1", "preferred_username": "eve", "email": "grace@example.org", "email_verified": False},
]


@pytest.fixture(scope="module")
def provider() -> Iterator[str]:
    """The address of a provider that runs on the loopback."""
    script = Path(__file__).parent / "oidc_provider.py"
    process = subprocess.Popen(
        [sys.executable, script, json.dumps(PEOPLE)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"AUTHLIB_INSECURE_TRANSPORT": "1"},
        text=True,
    )
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.fixture
def oidc(provider: str, settings: Settings) -> str:
    app = single_sign_on.oidc_app(provider, "benchhub", "secret", "Example")
    settings.SOCIALACCOUNT_PROVIDERS = {
        "openid_connect": {"OAUTH_PKCE_ENABLED": True, "SCOPE": ["openid", "profile", "email"], "APPS": [app]}
    }
    return provider


def onward(page: str) -> str:
    """Where the page on the way to the provider leads."""
    found = re.search(r'<a class="button button-primary" href="([^"]+)"', page)
    assert found, page
    return html.unescape(found[1])


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_arguments: object, **_more: object) -> None:
        return None


def said_yes(address: str, sub: str, action: str = "") -> str:
    """The person says at the provider who they are; returns where their browser is sent to, without the host."""
    body = urllib.parse.urlencode({"sub": sub} | ({"action": action} if action else {})).encode()
    try:
        urllib.request.build_opener(_NoRedirect).open(address, body, timeout=300)
    except urllib.error.HTTPError as answer:
        parts = urllib.parse.urlsplit(answer.headers["Location"])
        return f"{parts.path}?{parts.query}"
    raise AssertionError("the provider did not send the browser back")


def sign_in(browser: Client, sub: str, after: str = "") -> str:
    """Sign in at the provider; returns the address where the browser ends up."""
    asked = "?" + urllib.parse.urlencode({"process": "login"} | ({"next": after} if after else {}))
    page = browser.post(f"/accounts/oidc/sso/login/{asked}")
    assert page.status_code == 200
    answer = browser.get(said_yes(onward(page.content.decode()), sub), follow=True)
    return str(answer.request["PATH_INFO"])


@pytest.mark.django_db
def test_the_sign_in_page_offers_the_provider(oidc: str) -> None:
    page = Client().get("/accounts/login/").content.decode()
    assert "Sign in with Example" in page
    assert "/accounts/oidc/sso/login/" in page


@pytest.mark.django_db
def test_who_the_provider_knows_gets_an_account_and_the_teams_of_their_groups(oidc: str, settings: Settings) -> None:
    team = Team.objects.create(slug="perf", name="Performance")
    settings.BENCHHUB_SSO_GROUPS = read_rules(["perf-leads=perf:admin"])
    browser = Client()
    assert sign_in(browser, "g-1") == "/t/perf/"
    member = Member.objects.get(team=team)
    assert (member.user.get_username(), member.role, member.by_group) == ("grace", Role.ADMIN, True)
    assert member.user.email == "grace@example.org"
    browser.post("/accounts/logout/")
    assert sign_in(Client(), "g-1") == "/t/perf/"
    assert get_user_model().objects.count() == 1


@pytest.mark.django_db
def test_without_sign_up_only_the_invited_get_an_account(oidc: str, settings: Settings, admin: Member) -> None:
    settings.BENCHHUB_SSO_SIGNUP = False
    browser = Client()
    sign_in(browser, "g-1")
    assert not SocialAccount.objects.exists()
    link = invite(admin, "launcher").link
    path = urllib.parse.urlsplit(link).path
    assert "Join Performance" in browser.get(path).content.decode()
    assert sign_in(browser, "g-1", after=path) == "/t/perf/"
    assert Member.objects.get(user__username="grace").role == Role.LAUNCHER


@pytest.mark.django_db
@pytest.mark.parametrize("sub, same", [("g-1", True), ("e-1", False)])
def test_only_a_verified_address_opens_the_account_that_has_it(oidc: str, sub: str, same: bool) -> None:
    local = get_user_model().objects.create_user("local", email="grace@example.org", password="correct horse battery")
    EmailAddress.objects.create(user=local, email=local.email, verified=True, primary=True)
    browser = Client()
    sign_in(browser, sub)
    assert (browser.session.get("_auth_user_id") == str(local.pk)) is same
    assert SocialAccount.objects.filter(user=local).exists() is same


@pytest.mark.django_db
def test_who_says_no_or_comes_with_a_made_up_answer_is_not_signed_in(oidc: str) -> None:
    browser = Client()
    page = browser.post("/accounts/oidc/sso/login/?process=login")
    address = onward(page.content.decode())
    state = urllib.parse.parse_qs(urllib.parse.urlsplit(address).query)["state"][0]
    back = said_yes(address, "g-1", "deny")  # this provider forgets the state when somebody says no; real ones do not
    denied = browser.get(f"{back}&state={state}", follow=True)
    assert "cancelled" in denied.content.decode()
    made_up = browser.get("/accounts/oidc/sso/login/callback/?code=x&state=y")
    assert "Single sign-on failed" in made_up.content.decode()
    assert "_auth_user_id" not in browser.session


@pytest.mark.django_db
def test_an_answer_meant_for_another_browser_signs_nobody_in(oidc: str) -> None:
    mine, theirs = Client(), Client()
    page = mine.post("/accounts/oidc/sso/login/?process=login")
    back = said_yes(onward(page.content.decode()), "g-1")
    assert "Single sign-on failed" in theirs.get(back).content.decode()
    assert "_auth_user_id" not in theirs.session


@dataclass(frozen=True)
class Assertion:
    """What a SAML provider says of a person, right in every point unless a test changes it."""

    request_id: str
    audience: str = "http://localhost/accounts/saml/sso/metadata/"
    recipient: str = "http://localhost/accounts/saml/sso/acs/"
    issuer: str = "https://idp.example.org"
    name: str = "grace"
    valid_for: timedelta = timedelta(hours=6)
    signed: bool = True

    def xml(self) -> str:
        now = datetime.now(UTC)
        until = f"{now + self.valid_for:%Y-%m-%dT%H:%M:%SZ}"
        since, moment = f"{now - timedelta(hours=6):%Y-%m-%dT%H:%M:%SZ}", f"{now:%Y-%m-%dT%H:%M:%SZ}"
        answer = f' InResponseTo="{self.request_id}"' if self.request_id else ""
        values = {"uid": f"{self.name}-1", "username": self.name, "email": f"{self.name}@example.org"}
        attributes = "".join(
            f'<saml:Attribute Name="{key}"><saml:AttributeValue>{value}</saml:AttributeValue></saml:Attribute>'
            for key, value in (*values.items(), ("groups", "perf-leads"))
        )
        return (
            '<samlp:Response xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol" '
            'xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion" '
            f'ID="r1" Version="2.0" IssueInstant="{moment}" Destination="{self.recipient}"{answer}>'
            f"<saml:Issuer>{self.issuer}</saml:Issuer>"
            '<samlp:Status><samlp:StatusCode Value="urn:oasis:names:tc:SAML:2.0:status:Success"/></samlp:Status>'
            f'<saml:Assertion ID="a1" Version="2.0" IssueInstant="{moment}"><saml:Issuer>{self.issuer}</saml:Issuer>'
            f"<saml:Subject><saml:NameID>{self.name}</saml:NameID>"
            '<saml:SubjectConfirmation Method="urn:oasis:names:tc:SAML:2.0:cm:bearer">'
            f'<saml:SubjectConfirmationData NotOnOrAfter="{until}" Recipient="{self.recipient}"{answer}/>'
            "</saml:SubjectConfirmation></saml:Subject>"
            f'<saml:Conditions NotBefore="{since}" NotOnOrAfter="{until}"><saml:AudienceRestriction>'
            f"<saml:Audience>{self.audience}</saml:Audience></saml:AudienceRestriction></saml:Conditions>"
            f'<saml:AuthnStatement AuthnInstant="{moment}"><saml:AuthnContext><saml:AuthnContextClassRef>'
            "urn:oasis:names:tc:SAML:2.0:ac:classes:Password</saml:AuthnContextClassRef></saml:AuthnContext>"
            f"</saml:AuthnStatement><saml:AttributeStatement>{attributes}</saml:AttributeStatement>"
            "</saml:Assertion></samlp:Response>"
        )


@dataclass(frozen=True)
class Signer:
    """The key of a SAML provider and its certificate, both as PEM."""

    key: str
    certificate: str

    def answer(self, assertion: Assertion) -> str:
        """The form field of the answer; the assertion inside is what is signed."""
        whole = assertion.xml()
        if assertion.signed:
            start, end = whole.index("<saml:Assertion"), whole.index("</samlp:Response>")
            inner = whole[start:end].replace(
                "<saml:Assertion", '<saml:Assertion xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion"', 1
            )
            done: bytes | str = OneLogin_Saml2_Utils.add_sign(inner, self.key, self.certificate)
            text = done.decode() if isinstance(done, bytes) else done
            whole = whole[:start] + re.sub(r"<\?xml[^>]*\?>\s*", "", text) + whole[end:]
        return base64.b64encode(whole.encode()).decode()


def test_saml_without_its_library_stops_the_start_with_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """On machines for which its library has no wheel; everywhere else it is installed."""
    monkeypatch.setitem(sys.modules, "onelogin", None)
    monkeypatch.setenv("BENCHHUB_SAML_METADATA_URL", "https://idp.example.org/metadata")
    monkeypatch.setenv("BENCHHUB_SAML_ENTITY_ID", "https://idp.example.org/")
    with pytest.raises(ImproperlyConfigured, match="python3-saml is not installed"):
        single_sign_on.providers()


def new_signer() -> Signer:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "idp.example.org")])
    now = datetime.now(UTC)
    built = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    built = built.serial_number(1).not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return Signer(private.decode(), built.sign(key, hashes.SHA256()).public_bytes(pem).decode())


@pytest.fixture(scope="module")
def signer() -> Signer:
    return new_signer()


@pytest.fixture
def saml(signer: Signer, settings: Settings) -> Client:
    """A browser in front of an installation that trusts the signer."""
    idp = {
        "entity_id": "https://idp.example.org",
        "sso_url": "https://idp.example.org/sso",
        "x509cert": signer.certificate,
    }
    settings.SOCIALACCOUNT_PROVIDERS = {"saml": {"APPS": [single_sign_on.saml_app(idp)]}}
    return Client(headers={"host": "localhost"})


def asked(browser: Client) -> str:
    """Start at the sign-in page; returns the id of the question that the provider gets."""
    page = browser.post("/accounts/saml/sso/login/?process=login")
    address = onward(page.content.decode())
    assert address.startswith("https://idp.example.org/sso?")
    query = urllib.parse.parse_qs(urllib.parse.urlsplit(address).query)
    question = zlib.decompress(base64.b64decode(query["SAMLRequest"][0]), -15).decode()
    found = re.search(r'\bID="([^"]+)"', question)
    assert found
    return found[1]


def answered(browser: Client, answer: str) -> str:
    """The provider's form is sent by the browser; returns the page that follows."""
    return browser.post("/accounts/saml/sso/acs/", {"SAMLResponse": answer}, follow=True).content.decode()


@pytest.mark.django_db
def test_a_signed_assertion_signs_in_once(saml: Client, signer: Signer, settings: Settings) -> None:
    Team.objects.create(slug="perf", name="Performance")
    settings.BENCHHUB_SSO_GROUPS = read_rules(["perf-leads=perf:editor"])
    answer = signer.answer(Assertion(asked(saml)))
    answered(saml, answer)
    member = Member.objects.get()
    assert (member.user.get_username(), member.role) == ("grace", Role.EDITOR)
    assert saml.session["_auth_user_id"] == str(member.user_id)
    saml.post("/accounts/logout/")
    assert "Single sign-on failed" in answered(saml, answer)
    assert "_auth_user_id" not in saml.session


@pytest.mark.django_db
@pytest.mark.parametrize(
    "change",
    [
        {"signed": False},
        {"audience": "https://another.example.org"},
        {"recipient": "https://another.example.org/acs/"},
        {"issuer": "https://another.example.org"},
        {"valid_for": timedelta(hours=-1)},
        {"request_id": "made-up"},
        {"request_id": ""},
    ],
    ids=str,
)
def test_an_assertion_that_is_not_for_this_question_signs_nobody_in(
    saml: Client, signer: Signer, change: dict[str, object]
) -> None:
    assertion = replace(Assertion(asked(saml)), **change)  # type: ignore[arg-type]
    assert "Single sign-on failed" in answered(saml, signer.answer(assertion))
    assert "_auth_user_id" not in saml.session
    assert not get_user_model().objects.exists()


@pytest.mark.django_db
def test_an_assertion_signed_by_somebody_else_or_changed_afterwards_signs_nobody_in(
    saml: Client, signer: Signer
) -> None:
    good = signer.answer(Assertion(asked(saml)))
    changed = base64.b64encode(base64.b64decode(good).replace(b"grace", b"admin")).decode()
    for bad in (
        new_signer().answer(Assertion(asked(saml))),
        changed,
        "",
        "no base64!",
        base64.b64encode(b"<x/>").decode(),
    ):
        assert "Single sign-on failed" in answered(saml, bad)
        assert "_auth_user_id" not in saml.session


@pytest.mark.django_db
def test_the_saml_provider_can_read_who_we_are(saml: Client) -> None:
    answer = saml.get("/accounts/saml/sso/metadata/")
    assert answer.status_code == 200
    assert b"http://localhost/accounts/saml/sso/acs/" in answer.content


@pytest.mark.parametrize(
    "given, sentence",
    [
        ({"BENCHHUB_OIDC_URL": "https://idp"}, "BENCHHUB_OIDC_CLIENT_ID"),
        ({"BENCHHUB_SAML_METADATA_URL": "https://idp"}, "BENCHHUB_SAML_ENTITY_ID"),
        ({"BENCHHUB_SAML_SSO_URL": "https://idp", "BENCHHUB_SAML_ENTITY_ID": "x"}, "BENCHHUB_SAML_CERTIFICATE"),
        (
            {
                "BENCHHUB_SAML_SSO_URL": "https://idp",
                "BENCHHUB_SAML_ENTITY_ID": "x",
                "BENCHHUB_SAML_CERTIFICATE": "/nowhere",
            },
            "cannot be read",
        ),
    ],
)
def test_a_provider_that_is_described_by_half_stops_the_start(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, str], sentence: str
) -> None:
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ImproperlyConfigured, match=sentence):
        single_sign_on.providers()


@pytest.mark.parametrize("name", ["BENCHHUB_OIDC_URL", "BENCHHUB_SAML_METADATA_URL", "BENCHHUB_SAML_SSO_URL"])
@pytest.mark.parametrize(
    "url, refused",
    [
        ("http://idp.example.org/realms/main", True),
        ("http://10.0.0.7/metadata", True),
        ("http://localhost.example.org", True),
        ("http://127.0.0.1@idp.example.org", True),
        ("ftp://idp.example.org", True),
        ("idp.example.org", True),
        ("https://", True),
        ("https://idp.example.org:port", True),
        ("https://idp.example.org/realms/main", False),
        ("http://127.0.0.1:8081", False),
        ("http://[::1]:8081/metadata", False),
        ("http://localhost:8081", False),
    ],
)
def test_a_provider_without_tls_is_on_this_machine_or_stops_the_start(
    monkeypatch: pytest.MonkeyPatch, name: str, url: str, refused: bool
) -> None:
    monkeypatch.setenv(name, url)
    if not refused:
        assert single_sign_on.envurl(name) == url
        return
    with pytest.raises(ImproperlyConfigured, match=f"^{name} "):
        single_sign_on.providers()


def test_the_environment_describes_the_providers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    certificate = tmp_path / "idp.pem"
    certificate.write_text("PEM")
    for name, value in {
        "BENCHHUB_OIDC_URL": "https://idp.example.org",
        "BENCHHUB_OIDC_CLIENT_ID": "benchhub",
        "BENCHHUB_OIDC_CLIENT_SECRET": "s",
        "BENCHHUB_SAML_SSO_URL": "https://idp.example.org/sso",
        "BENCHHUB_SAML_ENTITY_ID": "https://idp.example.org",
        "BENCHHUB_SAML_CERTIFICATE": str(certificate),
        "BENCHHUB_SAML_ATTRIBUTES": "uid=urn:oid:1,email=mail",
        "BENCHHUB_SSO_TRUST_EMAIL": "yes",
    }.items():
        monkeypatch.setenv(name, value)
    found = single_sign_on.providers()
    [oidc_app], [saml_app] = found["openid_connect"]["APPS"], found["saml"]["APPS"]
    assert oidc_app["settings"]["server_url"] == "https://idp.example.org"
    assert saml_app["settings"]["attribute_mapping"] == {"uid": "urn:oid:1", "email": "mail", "username": "username"}
    assert saml_app["settings"]["idp"]["x509cert"] == "PEM"
    assert oidc_app["settings"]["verified_email"] is True
    monkeypatch.undo()
    assert single_sign_on.providers() == {}
