"""Everything that is sealed under the first key of the key file, so that the other keys can be thrown away."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass

from allauth.mfa.models import Authenticator
from django.db import transaction
from django.db.models import Model

from experiments.models import Host, PrometheusSource, Webhook
from experiments.registry.hosts.keys import SECOND_FACTOR_ROW, is_under_first_key, rotated

SEALED: tuple[tuple[type[Model], str, str], ...] = (
    (Host, "private_key", "host"),
    (Webhook, "secret", "webhook"),
    (Webhook, "token", "webhook token"),
    (PrometheusSource, "secret", "prometheus"),
)
"""Where sealed secrets are: model, column, and what stands before the id in the name under which a row is sealed."""

SEALED_IN_FACTORS = ("secret", "seed")
"""Of an authenticator app, and of recovery codes."""


@dataclass(frozen=True)
class Rotated:
    """One secret: the name of its row, and whether it had to be sealed anew."""

    row: str
    changed: bool


def rotate_all() -> Iterator[Rotated]:
    """Seal each secret under the first key. May be cut off anywhere and begun again: each row is stored by itself.

    KeyFileError when no key of the file opens a secret; those before it are done.
    """
    for model, column, prefix in SEALED:
        for pk in list(model._base_manager.order_by("pk").values_list("pk", flat=True)):
            changed = _rotate(model, column, pk, f"{prefix}:{pk}")
            if changed is not None:
                yield Rotated(f"{prefix}:{pk}", changed)
    for pk in list(Authenticator.objects.order_by("pk").values_list("pk", flat=True)):
        changed = _rotate_factor(pk)
        if changed is not None:
            yield Rotated(f"second factor:{pk}", changed)


def _rotate(model: type[Model], column: str, pk: int, row: str) -> bool | None:
    """Whether the secret had to be sealed anew; None when there is none, or no such row any more."""
    with transaction.atomic():
        # Locked: somebody may store another key meanwhile, which must not be lost.
        found = model._base_manager.select_for_update(of=("self",)).filter(pk=pk).values_list(column, flat=True).first()
        if not found:
            return None
        sealed = bytes(found)
        if is_under_first_key(sealed, row=row):
            return False
        model._base_manager.filter(pk=pk).update(**{column: rotated(sealed, row=row)})
        return True


def _rotate_factor(pk: int) -> bool | None:
    """The same for a second factor, whose secrets are in its data as text."""
    with transaction.atomic():
        factor = Authenticator.objects.select_for_update(of=("self",)).filter(pk=pk).first()
        names = [name for name in SEALED_IN_FACTORS if factor is not None and name in factor.data]
        if not names:
            return None
        secrets = {name: base64.b64decode(factor.data[name]) for name in names}
        if all(is_under_first_key(sealed, row=SECOND_FACTOR_ROW) for sealed in secrets.values()):
            return False
        for name, sealed in secrets.items():
            factor.data[name] = base64.b64encode(rotated(sealed, row=SECOND_FACTOR_ROW)).decode()
        factor.save(update_fields=["data"])
        return True
