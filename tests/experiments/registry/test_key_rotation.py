"""A new key for everything that is sealed: whole, in pieces, and never losing a secret."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP
from allauth.mfa.utils import decrypt
from cryptography.fernet import Fernet
from django.apps import apps
from django.core.management import CommandError, call_command
from django.db.models import BinaryField

from experiments.models import Host, Member, Webhook
from experiments.registry.hosts.host_keys import connect_args
from experiments.registry.hosts.key_rotation import SEALED, rotate_all
from experiments.registry.hosts.keys import is_under_first_key, rotated, seal, unseal
from tests.experiments.conftest import ready_host

NOT_SECRET = {("artifact", "content"), ("runprofile", "folded"), ("trend", "packed")}


@pytest.fixture
def keys(tmp_path: Path, settings: Any) -> Path:
    """A key file of its own with one key."""
    path = tmp_path / "keys"
    path.write_text(Fernet.generate_key().decode())
    settings.BENCHHUB_KEY_FILE = path
    return path


@pytest.fixture
def hosts(keys: Path, admin: Member) -> list[str]:
    """Private keys of five hosts, as they are before."""
    return [connect_args(ready_host(admin, f"sut-{number}"))[1] for number in range(5)]


def add_key(keys: Path) -> str:
    new = Fernet.generate_key().decode()
    keys.write_text(f"{new}\n{keys.read_text()}")
    return new


def private_keys() -> list[str]:
    return [connect_args(host)[1] for host in Host.objects.order_by("pk")]


def test_every_secret_is_sealed_under_the_first_key(
    keys: Path, hosts: list[str], admin: Member, capsys: pytest.CaptureFixture[str]
) -> None:
    webhook = Webhook.objects.create(team=admin.team, name="chat", url="https://chat.example/hook")
    webhook.secret = seal("whsec_1", row=f"webhook:{webhook.pk}")
    webhook.save()
    without = Host.objects.create(team=admin.team, name="no key", address="192.0.2.1", user="x")
    new = add_key(keys)
    call_command("rotate_keys")
    assert "6 secrets sealed anew, 0 were" in capsys.readouterr().out
    keys.write_text(new)
    without.delete()
    assert private_keys() == hosts
    webhook.refresh_from_db()
    assert unseal(bytes(webhook.secret), row=f"webhook:{webhook.pk}") == "whsec_1"
    call_command("rotate_keys")
    assert "0 secrets sealed anew, 6 were" in capsys.readouterr().out


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("cut_after", [0, 1, 4])
def test_a_rotation_that_was_cut_off_goes_on_where_it_was(
    keys: Path, hosts: list[str], cut_after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = add_key(keys)
    turns = iter(range(5))

    def dying(sealed: bytes, *, row: str) -> bytes:
        if next(turns) == cut_after:
            raise KeyboardInterrupt
        return rotated(sealed, row=row)

    monkeypatch.setattr("experiments.registry.hosts.key_rotation.rotated", dying)
    with pytest.raises(KeyboardInterrupt):
        list(rotate_all())
    monkeypatch.undo()
    done = [is_under_first_key(bytes(host.private_key), row=f"host:{host.pk}") for host in Host.objects.order_by("pk")]
    assert done == [True] * cut_after + [False] * (5 - cut_after)
    assert private_keys() == hosts
    assert [secret.changed for secret in rotate_all()] == [False] * cut_after + [True] * (5 - cut_after)
    keys.write_text(new)
    assert private_keys() == hosts


def test_second_factors_stay_valid(keys: Path, admin: Member) -> None:
    TOTP.activate(admin.user, "JBSWY3DPEHPK3PXP")
    codes = RecoveryCodes.activate(admin.user).get_unused_codes()
    new = add_key(keys)
    assert [(secret.row.split(":")[0], secret.changed) for secret in rotate_all()] == [("second factor", True)] * 2
    keys.write_text(new)
    app, recovery = Authenticator.objects.order_by("pk")
    assert decrypt(app.data["secret"]) == "JBSWY3DPEHPK3PXP"
    assert RecoveryCodes(recovery).get_unused_codes() == codes
    assert not any(secret.changed for secret in rotate_all())


def test_a_key_that_is_missing_stops_the_rotation_and_loses_nothing(keys: Path, hosts: list[str]) -> None:
    old = keys.read_text()
    keys.write_text(Fernet.generate_key().decode())
    with pytest.raises(CommandError, match="opens the secret of host:"):
        call_command("rotate_keys")
    keys.write_text(old)
    assert private_keys() == hosts


def test_every_column_of_bytes_is_rotated_or_no_secret() -> None:
    columns = {
        (str(model._meta.model_name), column.name)
        for model in apps.get_app_config("experiments").get_models()
        for column in model._meta.concrete_fields
        if isinstance(column, BinaryField)
    }
    assert columns == NOT_SECRET | {(str(model._meta.model_name), column) for model, column, _ in SEALED}
