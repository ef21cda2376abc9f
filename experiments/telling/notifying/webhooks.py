"""Webhooks of a team: made, changed, tried and ended by its admins. The secret is shown once."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, transaction

from experiments.models import Delivery, Member, Role, Webhook
from experiments.registry.database_clock import database_now
from experiments.registry.errors import Conflict, NotFound, RequestError
from experiments.registry.hosts.keys import seal, unseal
from experiments.registry.naming import check_title
from experiments.registry.outgoing.addresses import check_url, target_of
from experiments.registry.teams import audit
from experiments.registry.teams.access import require
from experiments.telling.notifying.events import deliver_later, new_delivery
from experiments.telling.notifying.happenings import EVENTS, TEST, Happening

MOST_WEBHOOKS = 20
MAX_TOKEN = 1000
ANNOTATIONS = "/api/annotations"


@dataclass(frozen=True)
class Wanted:
    """What a webhook is to be. RequestError of `check` names the field that does not fit.

    `token`: of a service account of Grafana, which only its format takes; "" keeps the one that is stored.
    """

    name: str
    url: str
    events: Sequence[str]
    format: str = Webhook.Format.JSON
    is_active: bool = True
    token: str = ""

    def check(self) -> None:
        check_url(self.url)
        if self.format not in Webhook.Format.values:
            raise RequestError(f"The format is one of {', '.join(Webhook.Format.values)}.", field="format")
        unknown = [event for event in self.events if event not in EVENTS]
        if unknown or not self.events:
            known = ", ".join(EVENTS)
            raise RequestError(f"Choose events of {known}.", field="events")
        self._check_for_grafana()

    def _check_for_grafana(self) -> None:
        is_grafana = self.format == Webhook.Format.GRAFANA
        if is_grafana and not target_of(self.url).path.partition("?")[0].endswith(ANNOTATIONS):
            raise RequestError(f"The address of Grafana's annotations ends with {ANNOTATIONS}.", field="url")
        if self.token and not is_grafana:
            raise RequestError("Only the format grafana takes a token.", field="token")
        if len(self.token) > MAX_TOKEN or not self.token.isascii() or not self.token.isprintable() or " " in self.token:
            raise RequestError(f"A token has at most {MAX_TOKEN} printable ASCII characters.", field="token")


def create_webhook(member: Member, wanted: Wanted) -> tuple[Webhook, str]:
    """A new webhook and its secret, which cannot be shown again."""
    require(member, Role.ADMIN)
    check_title(wanted.name.strip(), "A webhook")
    wanted.check()
    if Webhook.objects.for_team(member.team).count() >= MOST_WEBHOOKS:
        raise Conflict(f"A team has at most {MOST_WEBHOOKS} webhooks; delete one first.")
    webhook = Webhook(team=member.team, created_by_id=member.user_id)
    with transaction.atomic():
        _fill(webhook, wanted)
        secret = _new_secret(webhook)
        audit.record(member, "webhook.create", f"webhook {webhook.name}", after=_described(webhook))
    return webhook, secret


def locked_webhook(webhook: Webhook) -> Webhook:
    """The webhook as it is now; nobody else changes it until the end of the transaction. NotFound when it is gone."""
    found: Webhook | None = Webhook.objects.select_for_update(of=("self",)).filter(pk=webhook.pk).first()
    if found is None:
        raise NotFound(f"There is no webhook {webhook.pk} any more.")
    return found


def change_webhook(member: Member, webhook: Webhook, wanted: Wanted) -> None:
    """Other values. Whatever waits goes to the new address, or nowhere when it is switched off."""
    require(member, Role.ADMIN)
    if wanted.name.strip() != webhook.name:
        check_title(wanted.name.strip(), "A webhook")
    wanted.check()
    with transaction.atomic():
        locked = locked_webhook(webhook)
        before = _described(locked)
        _fill(locked, wanted)
        if not locked.is_active:
            locked.deliveries.filter(state=Delivery.State.WAITING).update(state=Delivery.State.GIVEN_UP, next_at=None)
        audit.record(member, "webhook.change", f"webhook {locked.name}", before=before, after=_described(locked))
        webhook.refresh_from_db()


def rotate_secret(member: Member, webhook: Webhook) -> str:
    """A new secret, shown once; from now on every try is signed with it."""
    require(member, Role.ADMIN)
    with transaction.atomic():
        locked = locked_webhook(webhook)
        secret = _new_secret(locked)
        audit.record(member, "webhook.rotate", f"webhook {locked.name}")
    return secret


def delete_webhook(member: Member, webhook: Webhook) -> None:
    """End it, with its log and whatever waits."""
    require(member, Role.ADMIN)
    with transaction.atomic():
        locked = locked_webhook(webhook)
        audit.record(member, "webhook.delete", f"webhook {locked.name}", before=_described(locked))
        locked.delete()


def send_test(member: Member, webhook: Webhook) -> Delivery:
    """A message that says so, to see whether the address takes it."""
    require(member, Role.ADMIN)
    who = member.user.get_username()
    happening = Happening(TEST, "Test message", f"{who} tries the webhook {webhook.name}.", "settings/webhooks/")
    with transaction.atomic():
        delivery = new_delivery(locked_webhook(webhook), happening, webhook.team)
        audit.record(member, "webhook.test", f"webhook {webhook.name}")
    return delivery


def redeliver(member: Member, delivery: Delivery) -> None:
    """Send the same message again, under the same id, with all its tries before it."""
    require(member, Role.ADMIN)
    with transaction.atomic():
        locked = Delivery.objects.select_for_update(of=("self",)).filter(pk=delivery.pk).first()
        if locked is None:
            raise NotFound(f"There is no delivery {delivery.pk} any more.")
        if locked.state == Delivery.State.WAITING:
            raise Conflict("This delivery waits for its next try already.")
        locked.state, locked.tries, locked.next_at = Delivery.State.WAITING, 0, database_now()
        locked.save(update_fields=["state", "tries", "next_at"])
        audit.record(member, "webhook.redeliver", f"delivery {locked.public_id}")
        deliver_later(locked)
        delivery.refresh_from_db()


def secret_of(webhook: Webhook) -> str:
    return unseal(bytes(webhook.secret), row=f"webhook:{webhook.pk}")


def _new_secret(webhook: Webhook) -> str:
    secret = f"whsec_{secrets.token_hex(24)}"
    webhook.secret = seal(secret, row=f"webhook:{webhook.pk}")
    webhook.save(update_fields=["secret"])
    return secret


def token_of(webhook: Webhook) -> str:
    """What its receiver asks for; "" where it asks for none."""
    return unseal(bytes(webhook.token), row=_token_row(webhook)) if webhook.token else ""


def _token_row(webhook: Webhook) -> str:
    return f"webhook token:{webhook.pk}"


def _set_token(webhook: Webhook, wanted: Wanted, place_before: str) -> None:
    """A new one, the one that is stored, or none. A stored one goes to no other place than the one it was given for."""
    if wanted.format != Webhook.Format.GRAFANA:
        webhook.token = b""
    elif wanted.token:
        webhook.token = seal(wanted.token, row=_token_row(webhook))
    elif not webhook.token:
        raise RequestError("Give the token of a service account of Grafana that may write annotations.", field="token")
    elif place_before != _place(webhook.url):
        raise RequestError("Another address: give the token once more.", field="token")
    webhook.save(update_fields=["token"])


def _place(url: str) -> str:
    target = target_of(url)
    return f"{target.scheme}://{target.host_header}"


def _fill(webhook: Webhook, wanted: Wanted) -> None:
    place_before = _place(webhook.url) if webhook.url else ""
    webhook.name, webhook.url, webhook.format = wanted.name.strip(), wanted.url, wanted.format
    webhook.events, webhook.is_active, webhook.state_reason = list(wanted.events), wanted.is_active, ""
    try:
        with transaction.atomic():
            webhook.save()
    except IntegrityError as error:
        raise Conflict("Another webhook of the team has this name.", field="name") from error
    _set_token(webhook, wanted, place_before)


def _described(webhook: Webhook) -> dict[str, Any]:
    """For the audit trail: the host alone, because the path of a chat's webhook is a secret."""
    return {
        "host": target_of(webhook.url).host_header,
        "format": webhook.format,
        "events": webhook.events,
        "is_active": webhook.is_active,
    }
