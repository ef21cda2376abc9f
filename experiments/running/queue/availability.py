"""The machines as the queue sees them at one moment: which are taken, dirty or kept, and which hosts are in service.

What is said of a host holds for all hosts that are the same machine, except that each host is in service by itself.
Looked up once for all waiting runs: asked of each run, it would cost runs times hosts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from django.db.models import BooleanField, ExpressionWrapper, Q
from django.db.models.functions import Now

from experiments.models import Host, Reservation
from experiments.registry.hosts.sites import at


@dataclass(frozen=True)
class Machines:
    """A machine is named by its id, and a host of which nothing is known by its own id, below zero.

    `taken` are those that runs have, or checks of a host; `kept` says for which users (by id) a machine is reserved.
    """

    of_host: Mapping[int, int]
    in_service: frozenset[int]
    taken: frozenset[int]
    dirty: frozenset[int]
    kept: Mapping[int, frozenset[int]]

    def of(self, hosts: Collection[int]) -> frozenset[int]:
        """The machines of these hosts."""
        return frozenset(self.of_host[pk] for pk in hosts)

    def allow(self, hosts: Collection[int], user_id: int | None) -> bool:
        """Whether this person's runs may have these hosts once they are free: in service, clean, kept for nobody else.

        Without `user_id`, because the account is gone, no reservation is theirs.
        """
        machines = self.of(hosts)
        if not self.in_service.issuperset(hosts) or machines & self.dirty:
            return False
        return all(users <= {user_id} for machine in machines if (users := self.kept.get(machine)))


def look_at_machines(hosts: Collection[int], site: str) -> Machines:
    """The machines of these hosts (by id), as a worker of the site finds them: two queries."""
    taken = Q(leased_by__isnull=False) | Q(canaries_until__gt=Now())
    in_service = at(site) & Q(state=Host.State.READY)
    rows = Host.objects.filter(Q(pk__in=hosts) | taken | Q(state=Host.State.DIRTY)).annotate(
        taken=ExpressionWrapper(taken, BooleanField()), in_service=ExpressionWrapper(in_service, BooleanField())
    )
    found = list(rows.values_list("pk", "machine_id", "state", "taken", "in_service"))
    of_host = {pk: machine or -pk for pk, machine, *_ in found}
    return Machines(
        of_host,
        in_service=frozenset(pk for pk, _, _, _, serves in found if serves),
        taken=frozenset(of_host[pk] for pk, _, _, is_taken, _ in found if is_taken),
        dirty=frozenset(of_host[pk] for pk, _, state, _, _ in found if state == Host.State.DIRTY),
        kept=_kept(of_host),
    )


def _kept(of_host: Mapping[int, int]) -> Mapping[int, frozenset[int]]:
    """By machines as they were just seen: a host may be recognised between two queries."""
    current = Reservation.objects.filter(starts_at__lte=Now(), until__gt=Now(), hosts__isnull=False)
    users = defaultdict(set)
    for host, machine, user in current.values_list("hosts", "hosts__machine", "member__user").order_by():
        users[of_host.get(host, machine or -host)].add(user)
    return {machine: frozenset(those) for machine, those in users.items()}
