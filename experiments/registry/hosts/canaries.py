"""Short checks of hosts: asking for them, and keeping what they gave."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from django.db import transaction

from agents.events import Role
from agents.running.canary_checks import CanaryReading
from experiments.models import Experiment, Host, HostCanary, Member
from experiments.registry.errors import Conflict
from experiments.registry.hosts.inventory import check_state
from experiments.registry.teams.access import require_launch_on
from experiments.registry.workers.outbox import TRY_HOST, send


def request_canaries(member: Member, host: Host) -> None:
    """Ask a worker to check how fast the host is; `host.last_canaries` says how it went. Conflict while it is used."""
    require_launch_on(member, host)
    host_id = host.pk
    with transaction.atomic():
        locked = Host.objects.select_for_update(of=("self",)).get(pk=host_id)
        if locked.state != Host.State.READY:
            raise Conflict(f"{locked.name} is {locked.get_state_display()}; only a host that is ready can be checked.")
        if locked.site is not None and locked.site.keys_stay:
            raise Conflict(
                f"{locked.name} is at the site {locked.site.name}, whose keys stay there: its workers check it before "
                "an experiment, not on request."
            )
        if locked.leased_by is not None:
            raise Conflict(f"Run #{locked.leased_by.number} is using {locked.name}; check it when that has ended.")
        locked.last_canaries = check_state("pending", "Waiting for a worker.")
        locked.save(update_fields=["last_canaries"])
        site = locked.site_name
        transaction.on_commit(lambda: send(TRY_HOST, host_id, site), robust=True)
    host.refresh_from_db(fields=["last_canaries"])


def keep_readings(
    readings: Iterable[CanaryReading], hosts: Mapping[Role, int], experiment: Experiment | None = None
) -> None:
    """Store what the checks of these hosts gave; `hosts` has the id of the host in each role."""
    HostCanary.objects.bulk_create(
        HostCanary(
            host_id=hosts[one.role],
            peer_id=hosts[one.to] if one.to else None,
            experiment=experiment,
            check_name=one.check,
            value=one.value,
            problem=one.problem.replace("\0", "\ufffd"),
        )
        for one in readings
    )


def are_due(experiment: Experiment, hosts: Mapping[Role, int]) -> bool:
    """Whether hosts of a run of this experiment are still to be checked before it."""
    if not experiment.canaries_first:
        return False
    known = experiment.host_canaries.filter(host__in=hosts.values()).values_list("host", flat=True)
    return bool(set(hosts.values()) - set(known))
