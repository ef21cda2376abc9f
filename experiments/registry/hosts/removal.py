"""Removing a host that nothing was measured on: a mistyped one, or one that never came."""

from __future__ import annotations

from django.db import transaction
from django.db.models import ProtectedError

from experiments.models import Host, Member, Role
from experiments.registry.errors import Conflict
from experiments.registry.hosts.inventory import described
from experiments.registry.teams.access import require
from experiments.registry.teams.audit import record


def remove_host(member: Member, host: Host) -> None:
    """Forget the host with its key, grants and hardware history. Conflict when runs or other hosts speak of it."""
    require(member, Role.EDITOR)
    name = host.name
    with transaction.atomic():
        locked = Host.objects.select_for_update(of=("self",)).get(pk=host.pk)
        if locked.driver_sets.exists() or locked.reservations.exists():
            raise _in_use(name)
        before = described(locked)
        try:
            host.delete()
        except ProtectedError as error:
            raise _in_use(name) from error
        record(member, "host.remove", f"host {name}", before=before)


def _in_use(name: str) -> Conflict:
    return Conflict(
        f"{name} cannot be removed: runs, experiments, reservations or other hosts speak of it. Drain it instead: "
        "nothing starts there any more, and what was measured keeps its origin."
    )
