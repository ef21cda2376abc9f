"""Single sign-on as the environment describes it: one OpenID Connect provider, one SAML provider, or none."""

from __future__ import annotations

import importlib.util
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from benchhub.environment import envbool, envlist, envpath, envsecret

OIDC, SAML = "sso", "sso"
"""The last word of the addresses that the identity provider is told: /accounts/oidc/sso/, /accounts/saml/sso/."""


def text(value: list[str]) -> str:
    return ",".join(value)


def entries(value: list[str]) -> list[str]:
    """What stands between semicolons: names of groups may have commas."""
    return [part.strip() for part in text(value).split(";") if part.strip()]


def envurl(name: str) -> str:
    """The address in a variable; empty when there is none. Without TLS anybody on the way could sign in as anybody.

    ImproperlyConfigured, with the variable's name, unless it is https://, or http:// to this machine.
    """
    url = text(envlist(name))
    if not url:
        return ""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port  # a port that is none raises here, not at the first sign-in
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} is no address: {error}.") from error
    if not host or not (parts.scheme == "https" or (parts.scheme == "http" and is_this_machine(host))):
        raise ImproperlyConfigured(
            f"{name} must be an address with https://, not {url!r}; http:// only for a provider on this machine."
        )
    return url


def is_this_machine(host: str) -> bool:
    """Whether a host name or address is one of the loopback."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def providers() -> dict[str, Any]:
    """allauth's SOCIALACCOUNT_PROVIDERS. A provider that is described by half stops the start."""
    found: dict[str, Any] = {}
    if url := envurl("BENCHHUB_OIDC_URL"):
        client_id, secret = text(envlist("BENCHHUB_OIDC_CLIENT_ID")), envsecret("BENCHHUB_OIDC_CLIENT_SECRET")
        if not client_id or not secret:
            raise ImproperlyConfigured(
                "BENCHHUB_OIDC_URL needs BENCHHUB_OIDC_CLIENT_ID and BENCHHUB_OIDC_CLIENT_SECRET."
            )
        found["openid_connect"] = {
            "OAUTH_PKCE_ENABLED": True,
            "SCOPE": ["openid", "profile", "email", *envlist("BENCHHUB_OIDC_SCOPES")],
            "APPS": [oidc_app(url, client_id, secret, text(envlist("BENCHHUB_OIDC_NAME", ("single sign-on",))))],
        }
    if metadata_url := envurl("BENCHHUB_SAML_METADATA_URL"):
        entity_id = text(envlist("BENCHHUB_SAML_ENTITY_ID"))
        if not entity_id:
            raise ImproperlyConfigured("BENCHHUB_SAML_METADATA_URL needs BENCHHUB_SAML_ENTITY_ID.")
        found["saml"] = {"APPS": [saml_app({"entity_id": entity_id, "metadata_url": metadata_url})]}
    elif sso_url := envurl("BENCHHUB_SAML_SSO_URL"):
        entity_id, certificate = text(envlist("BENCHHUB_SAML_ENTITY_ID")), envpath("BENCHHUB_SAML_CERTIFICATE")
        if not entity_id or certificate is None:
            raise ImproperlyConfigured(
                "BENCHHUB_SAML_SSO_URL needs BENCHHUB_SAML_ENTITY_ID and the file BENCHHUB_SAML_CERTIFICATE."
            )
        idp = {"entity_id": entity_id, "sso_url": sso_url, "x509cert": _certificate(certificate)}
        found["saml"] = {"APPS": [saml_app(idp)]}
    return found


def oidc_app(url: str, client_id: str, secret: str, name: str) -> dict[str, Any]:
    """One OpenID Connect provider: `url` is its issuer, where /.well-known/openid-configuration is found."""
    return {
        "provider_id": OIDC,
        "name": name,
        "client_id": client_id,
        "secret": secret,
        "settings": {"server_url": url, "email_authentication": True, **_trust()},
    }


def saml_app(idp: dict[str, str]) -> dict[str, Any]:
    """One SAML provider. Assertions must be signed, and answer a question that BenchHub asked."""
    if importlib.util.find_spec("onelogin") is None:
        raise ImproperlyConfigured(
            "BENCHHUB_SAML_ENTITY_ID asks for SAML, and the package python3-saml is not installed here: its library "
            "xmlsec comes ready-made for x86_64 only. Install it with pip (Debian: apt-get install libxmlsec1-dev "
            "pkg-config gcc python3-dev first), or use OpenID Connect (BENCHHUB_OIDC_URL)."
        )
    mapping = dict(entry.split("=", 1) for entry in envlist("BENCHHUB_SAML_ATTRIBUTES") if "=" in entry)
    return {
        "provider_id": idp["entity_id"],
        "name": text(envlist("BENCHHUB_SAML_NAME", ("single sign-on",))),
        "client_id": SAML,
        "settings": {
            "idp": idp,
            "attribute_mapping": {"uid": "uid", "email": "email", "username": "username"} | mapping,
            "email_authentication": True,
            "advanced": {"want_assertion_signed": True, "reject_idp_initiated_sso": True, "strict": True},
            **_trust(),
        },
    }


def _trust() -> dict[str, bool]:
    """Without it, a mail address counts as the person's own only when the provider says that it has verified it."""
    return {"verified_email": True} if envbool("BENCHHUB_SSO_TRUST_EMAIL", False) else {}


def _certificate(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise ImproperlyConfigured(f"BENCHHUB_SAML_CERTIFICATE cannot be read: {error}.") from error
