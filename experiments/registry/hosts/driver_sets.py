"""The hosts of runs beside their SUT as sets, and which host has which part in a run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from django.db import transaction

from agents.events import Role
from agents.spec import driver_role
from experiments.models import DriverSet, Host, Run
from experiments.registry.errors import RequestError
from experiments.registry.hosts.sites import insist_on_one_site


def driver_set(hosts: Iterable[Host], members: Mapping[str, Host] | None = None) -> DriverSet:
    """The set of these driver hosts of one team and of a system's further hosts, made when it is needed first."""
    drivers = sorted({host.pk: host for host in hosts}.values(), key=lambda host: int(host.pk))
    key = ",".join(str(host.pk) for host in drivers)
    if members:
        key += ";" + ",".join(f"{role}={host.pk}" for role, host in sorted(members.items()))
    with transaction.atomic():
        found, created = DriverSet.objects.get_or_create(key=key, defaults={"team_id": drivers[0].team_id})
        if created:
            found.hosts.set([*drivers, *(members or {}).values()])
    made: DriverSet = found
    return made


def members_of(set_ids: Collection[int]) -> dict[int, tuple[int, ...]]:
    """The ids of all hosts of each set, in ascending order and in one query."""
    through = DriverSet.hosts.through.objects.filter(driverset__in=set_ids)
    found: dict[int, tuple[int, ...]] = {}
    for set_id, host_id in through.order_by("driverset_id", "host_id").values_list("driverset_id", "host_id"):
        found[set_id] = (*found.get(set_id, ()), host_id)
    return found


def hosts_by_role(run: Run) -> dict[Role, int]:
    """The id of each host of the run by its part in it; no host stands there for an imported run."""
    found: dict[Role, int] = {"sut": run.sut_id} if run.sut_id is not None else {}
    if run.drivers_id is None:
        return found
    others = DriverSet.objects.get(pk=run.drivers_id)
    drivers = (int(pk) for pk in others.key.partition(";")[0].split(","))
    return found | others.member_ids | {driver_role(number): pk for number, pk in enumerate(drivers)}


def check_parts(sut: Host, drivers: Sequence[Host], members: Mapping[str, Host] | None = None) -> None:
    """RequestError (fields `sut`, `drivers`, `members.ROLE`) when a host cannot take its part: no approved key,
    another role, or another site than the SUT's."""
    if not drivers:
        raise RequestError("Choose at least one driver host.", field="drivers")
    servers = [("sut", "sut", sut), *(("sut", f"members.{role}", host) for role, host in (members or {}).items())]
    for role, field, host in (*servers, *(("driver", "drivers", driver) for driver in drivers)):
        if not host.host_key:
            raise RequestError(f"The host key of {host.name} is not approved yet; open the host's page.", field=field)
        if host.roles not in (role, Host.Roles.BOTH):
            raise RequestError(f"{host.name} may not be used as {role}; its role is {host.roles}.", field=field)
    insist_on_one_site(sut, [(f"members.{role}", host) for role, host in (members or {}).items()])
    insist_on_one_site(sut, [("drivers", host) for host in drivers])
