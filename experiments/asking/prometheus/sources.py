"""Prometheus sources of a team: made, changed and ended by its admins. Their secrets are never shown."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, transaction

from experiments.asking.prometheus.queries import ChannelQuery, check_queries, queries_of
from experiments.models import Member, PrometheusSource, Role, Team
from experiments.registry.errors import Conflict, NotFound, RequestError
from experiments.registry.hosts.keys import seal, unseal
from experiments.registry.naming import check_title
from experiments.registry.outgoing.addresses import check_url, target_of
from experiments.registry.teams import audit
from experiments.registry.teams.access import require

MOST_SOURCES = 10
MAX_USERNAME = 200
MAX_SECRET = 4000
API = "/api/v1"


@dataclass(frozen=True)
class Wanted:
    """What a source is to be. RequestError of `check` names the field that does not fit.

    `secret`: a bearer token or a password; "" keeps the one that is stored.
    """

    name: str
    url: str
    queries: Sequence[ChannelQuery]
    auth: str = PrometheusSource.Auth.NONE
    username: str = ""
    secret: str = ""
    is_active: bool = True

    def check(self) -> None:
        check_url(self.url)
        path = target_of(self.url).path
        if "?" in path:
            raise RequestError("Give the URL without a query: https://prometheus.example.com.", field="url")
        if f"{path.rstrip('/')}/".endswith(f"{API}/") or f"{API}/query" in path:
            raise RequestError(f"Give the URL without {API}: BenchHub puts that behind it.", field="url")
        if self.auth not in PrometheusSource.Auth.values:
            raise RequestError(f"auth is one of {', '.join(PrometheusSource.Auth.values)}.", field="auth")
        self._check_login()
        check_queries(self.queries)

    def _check_login(self) -> None:
        is_basic = self.auth == PrometheusSource.Auth.BASIC
        if is_basic != bool(self.username):
            text = "Give the user." if is_basic else "Only the auth basic has a user."
            raise RequestError(text, field="username")
        if len(self.username) > MAX_USERNAME or not self.username.isprintable() or ":" in self.username:
            raise RequestError(
                f"A user has at most {MAX_USERNAME} printable characters and no colon.", field="username"
            )
        if self.secret and self.auth == PrometheusSource.Auth.NONE:
            raise RequestError("A token or password needs the auth bearer or basic.", field="secret")
        is_token = self.secret.isascii() and " " not in self.secret
        if len(self.secret) > MAX_SECRET or not self.secret.isprintable() or not (is_basic or is_token):
            raise RequestError(
                f"A token has at most {MAX_SECRET:,} printable ASCII characters without blanks, a password at most as "
                "many printable ones.",
                field="secret",
            )


def sources_of(team: Team) -> list[PrometheusSource]:
    """By name."""
    return list(PrometheusSource.objects.for_team(team).select_related("created_by").order_by("name"))


def find_source(member: Member, source_id: int) -> PrometheusSource:
    found: PrometheusSource | None = (
        PrometheusSource.objects.for_team(member.team).select_related("team", "created_by").filter(pk=source_id).first()
    )
    if found is None:
        raise NotFound(f"There is no Prometheus source {source_id}.")
    return found


def create_source(member: Member, wanted: Wanted) -> PrometheusSource:
    """A new source. It is asked after each run that ends from now on."""
    require(member, Role.ADMIN)
    check_title(wanted.name.strip(), "A Prometheus source")
    wanted.check()
    source = PrometheusSource(team=member.team, created_by_id=member.user_id)
    with transaction.atomic():
        others = _others(source)
        if len(others) >= MOST_SOURCES:
            raise Conflict(f"A team has at most {MOST_SOURCES} Prometheus sources; delete one first.")
        _fill(source, wanted, others)
        audit.record(member, "prometheus.create", f"prometheus {source.name}", after=_described(source))
    return source


def change_source(member: Member, source: PrometheusSource, wanted: Wanted) -> None:
    """Other values. What waits is asked by the new ones, or not at all when it is switched off."""
    require(member, Role.ADMIN)
    if wanted.name.strip() != source.name:
        check_title(wanted.name.strip(), "A Prometheus source")
    wanted.check()
    with transaction.atomic():
        others = _others(source)
        locked = _locked(source)
        before, had_secret = _described(locked), bytes(locked.secret)
        _fill(locked, wanted, others)
        if not locked.is_active:
            locked.readings.update(next_at=None)
        after = _described(locked)
        if bytes(locked.secret) != had_secret:
            after["secret"] = "changed" if locked.secret else "removed"
        audit.record(member, "prometheus.change", f"prometheus {locked.name}", before=before, after=after)
    source.refresh_from_db()


def delete_source(member: Member, source: PrometheusSource) -> None:
    """End it, with whatever waits; the channels of runs stay."""
    require(member, Role.ADMIN)
    with transaction.atomic():
        locked = _locked(source)
        audit.record(member, "prometheus.delete", f"prometheus {locked.name}", before=_described(locked))
        locked.delete()


def login_of(source: PrometheusSource) -> Mapping[str, str]:
    """The header by which it is asked. KeyFileError when its secret cannot be read."""
    if source.auth == PrometheusSource.Auth.NONE:
        return {}
    secret = unseal(bytes(source.secret), row=_row(source))
    if source.auth == PrometheusSource.Auth.BEARER:
        return {"Authorization": f"Bearer {secret}"}
    pair = base64.b64encode(f"{source.username}:{secret}".encode()).decode()
    return {"Authorization": f"Basic {pair}"}


def _fill(source: PrometheusSource, wanted: Wanted, others: Sequence[PrometheusSource]) -> None:
    place_before = _place(source.url) if source.url else ""
    auth_before = source.auth
    source.name, source.url, source.is_active = wanted.name.strip(), wanted.url, wanted.is_active
    source.auth, source.username, source.queries = wanted.auth, wanted.username, check_queries(wanted.queries)
    try:
        with transaction.atomic():
            source.save()
    except IntegrityError as error:
        raise Conflict("Another Prometheus source of the team has this name.", field="name") from error
    _check_channels(wanted.queries, others)
    if source.auth == PrometheusSource.Auth.NONE:
        source.secret = b""
    elif wanted.secret:
        source.secret = seal(wanted.secret, row=_row(source))
    elif not source.secret or auth_before != source.auth:
        what = "token" if source.auth == PrometheusSource.Auth.BEARER else "password"
        raise RequestError(f"Give the {what}.", field="secret")
    elif place_before != _place(source.url):
        raise RequestError("Another address: give the token or password once more.", field="secret")
    source.save(update_fields=["secret"])


def _check_channels(queries: Sequence[ChannelQuery], others: Sequence[PrometheusSource]) -> None:
    """RequestError when another source of the team has one of these channels: they would replace each other."""
    taken = {(one.role, one.channel): other.name for other in others for one in queries_of(other.queries)}
    for number, one in enumerate(queries):
        if (one.role, one.channel) in taken:
            raise RequestError(
                f"The source {taken[one.role, one.channel]} has the channel {one.channel} of the {one.role} already.",
                field=f"queries.{number}.channel",
            )


def _others(source: PrometheusSource) -> list[PrometheusSource]:
    """The team's other sources, nobody else changing any of them meanwhile."""
    Team.objects.select_for_update(no_key=True, of=("self",)).get(pk=source.team_id)
    return list(PrometheusSource.objects.filter(team=source.team_id).exclude(pk=source.pk))


def _locked(source: PrometheusSource) -> PrometheusSource:
    found: PrometheusSource | None = (
        PrometheusSource.objects.select_for_update(of=("self",)).filter(pk=source.pk).first()
    )
    if found is None:
        raise NotFound(f"There is no Prometheus source {source.pk} any more.")
    return found


def _row(source: PrometheusSource) -> str:
    return f"prometheus:{source.pk}"


def _place(url: str) -> str:
    target = target_of(url)
    return f"{target.scheme}://{target.host_header}"


def _described(source: PrometheusSource) -> dict[str, Any]:
    """For the audit trail."""
    names = ("url", "auth", "username", "queries", "is_active")
    return {name: getattr(source, name) for name in names}
