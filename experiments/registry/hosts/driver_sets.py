"""The driver hosts of runs as sets, and which host has which part in a run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from django.db import transaction

from agents.events import Role
from agents.spec import driver_role
from experiments.models import DriverSet, Host, Run
from experiments.registry.errors import RequestError


def driver_set(hosts: Iterable[Host]) -> DriverSet:
    """The set of these hosts of one team, made when it is needed first."""
    members = sorted({host.pk: host for host in hosts}.values(), key=lambda host: int(host.pk))
    key = ",".join(str(host.pk) for host in members)
    with transaction.atomic():
        found, created = DriverSet.objects.get_or_create(key=key, defaults={"team_id": members[0].team_id})
        if created:
            found.hosts.set(members)
    made: DriverSet = found
    return made


def members_of(set_ids: Collection[int]) -> dict[int, tuple[int, ...]]:
    """The ids of the hosts of each set in the order of their parts, in one query."""
    through = DriverSet.hosts.through.objects.filter(driverset__in=set_ids)
    found: dict[int, tuple[int, ...]] = {}
    for set_id, host_id in through.order_by("driverset_id", "host_id").values_list("driverset_id", "host_id"):
        found[set_id] = (*found.get(set_id, ()), host_id)
    return found


def hosts_by_role(run: Run) -> dict[Role, int]:
    """The id of each host of the run by its part in it; no host stands there for an imported run."""
    drivers = members_of([run.drivers_id]).get(run.drivers_id, ()) if run.drivers_id is not None else ()
    found: dict[Role, int] = {"sut": run.sut_id} if run.sut_id is not None else {}
    return found | {driver_role(number): pk for number, pk in enumerate(drivers)}


def check_parts(sut: Host, drivers: Sequence[Host]) -> None:
    """RequestError (fields `sut`, `drivers`) when a host cannot take its part: no approved key, or another role."""
    if not drivers:
        raise RequestError("Choose at least one driver host.", field="drivers")
    for role, field, host in (("sut", "sut", sut), *(("driver", "drivers", driver) for driver in drivers)):
        if not host.host_key:
            raise RequestError(f"The host key of {host.name} is not approved yet; open the host's page.", field=field)
        if host.roles not in (role, Host.Roles.BOTH):
            raise RequestError(f"{host.name} may not be used as {role}; its role is {host.roles}.", field=field)
