"""Which hosts are one machine under several names: known by where they answer and by what they show of themselves.

The same kernel at work is the same machine, because what runs there shares its CPUs: an equal boot_id says so, also of
containers with installations of their own. A boot_id ends with its boot. Over a restart a host stays what it was as
long as its installation (machine-id) or its firmware is the same; the installation alone never makes two hosts one,
as copies of one image share it. A boot that is seen again after a newer one of its machine proves that the two are
machines apart.
"""

from __future__ import annotations

import socket
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from django.db import connection, transaction
from django.db.models import Exists, OuterRef, Q

from agents.facts.access import Access
from experiments.models import Host, Machine
from experiments.registry.hosts.spellings import written

_MACHINES_LOCK = 0x4D616368  # "Mach"
MOST_PAST_BOOTS = 50
OF_OTHERS = "a host of another team"


@dataclass(frozen=True)
class Sisters:
    """The other hosts that are the same machine as some, by the id of each; with the run that leases them."""

    of_host: Mapping[int, tuple[Host, ...]] = field(default_factory=dict)

    def of(self, host_id: int) -> tuple[Host, ...]:
        return self.of_host.get(host_id, ())

    @property
    def ids(self) -> set[int]:
        """The ids of all of them."""
        return {one.pk for others in self.of_host.values() for one in others}

    def first(self, host_id: int) -> int:
        """What stands for the machine: the lowest id of those that are the same one, as far as they are known here."""
        return self._first.get(host_id, host_id)

    @cached_property
    def _first(self) -> dict[int, int]:
        machines = ((pk, *(one.pk for one in others)) for pk, others in self.of_host.items())
        return {pk: min(machine) for machine in machines for pk in machine}


def sisters_of(hosts: Iterable[Host]) -> Sisters:
    """In one query, however many hosts there are."""
    machines = {host.pk: host.machine_id for host in hosts if host.machine_id is not None}
    if not machines:
        return Sisters()
    fields = ("name", "team_id", "state", "machine_id", "leased_by__number", "leased_by__team_id", "leased_by__state")
    another = Host.objects.filter(machine=OuterRef("machine")).exclude(pk=OuterRef("pk"))
    found = Host.objects.filter(Exists(another), machine__in=set(machines.values()))
    on_machine: dict[int | None, list[Host]] = defaultdict(list)
    for host in found.select_related("leased_by").only(*fields).order_by("pk"):
        on_machine[host.machine_id].append(host)
    return Sisters(
        {pk: tuple(other for other in on_machine[machine] if other.pk != pk) for pk, machine in machines.items()}
    )


def are_one(one: Host, other: Host) -> bool:
    """Whether the two are known to be one machine. Asks nothing of the database."""
    return one.pk == other.pk or (one.machine_id is not None and one.machine_id == other.machine_id)


def sister_name(sister: Host, team_id: int) -> str:
    """How the host is called before members of that team: names of other teams are not theirs to read."""
    return sister.name if sister.team_id == team_id else OF_OTHERS


def same_machine_as(host: Host, sisters: Collection[Host]) -> str:
    """The hosts that are the same machine, in words: "sut-1 and a host of another team"; "" when there is none."""
    names = list(dict.fromkeys(sister_name(one, host.team_id) for one in sisters))
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def leased_sister(sisters: Iterable[Host], *, besides: int | None = None) -> Host | None:
    """The first of them that a run has, but for the run `besides`."""
    return next((one for one in sisters if one.leased_by_id not in (None, besides)), None)


def who_uses(host: Host, sisters: Collection[Host], *, besides: int | None = None) -> str:
    """Why no run may start on the host beside its sisters, in words without a full stop; "" when one may.

    A run (not the one `besides`) has one of them, or one is dirty.
    """
    same = f"{host.name} is the same machine as"
    if (taken := leased_sister(sisters, besides=besides)) is not None and taken.leased_by is not None:
        if taken.team_id == host.team_id:
            return f"{same} {taken.name}, which run #{taken.leased_by.number} uses"
        return f"{same} {OF_OTHERS}, which a run of that team uses"
    if (dirty := next((one for one in sisters if one.state == Host.State.DIRTY), None)) is not None:
        return f"{same} {sister_name(dirty, host.team_id)}, which is dirty"
    return ""


def place_of(host: Host, *, look_up: bool = False) -> str:
    """Where the host answers, one text for all spellings of it, with the jump hosts on the way.

    Names are looked up only on request, as that may take seconds; one with several addresses stays a name. What lies
    behind a jump host is looked up there. The same private address is another machine at another site.
    """
    name = host.address.lower().rstrip(".")
    address = written(name) or _one_address(name, look_up=look_up and host.jump is None)
    if host.jump:
        behind = f"{place_of(host.jump)} > "
    else:
        behind = f"{host.site_name}: " if host.site is not None else ""
    return f"{behind}{address} {host.port}"


def settle(host: Host, *, look_up: bool = False) -> None:
    """Put the host beside those that answer at the same place: whatever they are, they are the same machine."""
    place = place_of(host, look_up=look_up)
    if place == host.place:
        return
    with transaction.atomic():
        lock_machines()
        there = Host.objects.select_related("machine").filter(place=place).exclude(pk=host.pk).order_by("pk")
        machine = next((one.machine for one in there if one.machine is not None), None)
        if there and machine is None:
            machine = Machine.objects.create()
        _move(Q(place=place) | Q(pk=host.pk), machine or host.machine)
        Host.objects.filter(pk=host.pk).update(place=place)
    host.refresh_from_db(fields=["machine", "place"])


def forget(host: Host) -> None:
    """The host leads somewhere else from now on: what it has shown was of another machine. The caller saves it."""
    host.machine = None
    host.place = host.boot_id = host.installation = host.hardware = ""


def is_news(host: Host, shown: Access) -> bool:
    """Whether something is to be learned from what the host has just shown. Asks nothing but for its machine."""
    if not shown.boot_id:
        return False
    same = (host.boot_id, host.installation, host.hardware) == (
        shown.boot_id,
        shown.installation or "",
        shown.hardware or "",
    )
    return not same or host.machine is None or host.machine.boot_id != shown.boot_id


def recognise(host_id: int, shown: Access | None) -> None:
    """Learn from what the host has just shown which machine it is. Call it before locking any host.

    Most hosts are what they were: who shows nothing new waits for no other one.
    """
    if shown is None or not shown.boot_id:
        return
    stored = Host.objects.select_related("machine").filter(pk=host_id)
    if not any(is_news(host, shown) for host in stored):
        return
    with transaction.atomic():
        lock_machines()
        host = stored.first()
        if host is None:
            return
        machine = _machine_of(host, shown)
        _move(Q(pk=host.pk) | (Q(place=host.place) if host.place else Q()), machine)
        Host.objects.filter(pk=host.pk).update(
            boot_id=shown.boot_id, installation=shown.installation or "", hardware=shown.hardware or ""
        )


def _machine_of(host: Host, shown: Access) -> Machine:
    boot_id = str(shown.boot_id)
    known = Machine.objects.filter(Q(boot_id=boot_id) | Q(past_boots__contains=[boot_id])).order_by("pk").first()
    if known is not None and known.boot_id == boot_id:
        return known
    if known is not None:
        return _split(known, boot_id)
    if host.machine is not None and _has_restarted(host, host.machine, shown):
        return _restarted(host.machine, boot_id)
    if shown.installation and shown.hardware:
        alike = Host.objects.filter(installation=shown.installation, hardware=shown.hardware, machine__isnull=False)
        if (other := alike.select_related("machine").order_by("pk").first()) is not None:
            return _restarted(other.machine, boot_id)
    return Machine.objects.create(boot_id=boot_id)


def _has_restarted(host: Host, machine: Machine, shown: Access) -> bool:
    """Whether a boot that nobody has seen yet is the next one of the host's machine."""
    if not machine.boot_id or not host.boot_id:
        return True  # nobody has looked there yet, or only under another name at the same place
    if host.installation and host.installation == shown.installation:
        return True
    if host.hardware and host.hardware == shown.hardware:
        return True
    others = Host.objects.filter(machine=machine).exclude(pk=host.pk)
    return not (others.exclude(place=host.place) if host.place else others).exists()


def _restarted(machine: Machine, boot_id: str) -> Machine:
    if machine.boot_id:
        machine.past_boots = [*machine.past_boots, machine.boot_id][-MOST_PAST_BOOTS:]
    machine.boot_id = boot_id
    machine.save()
    return machine


def _split(known: Machine, boot_id: str) -> Machine:
    """An older boot of the machine is alive: whoever showed it last is no part of the machine with the newer one."""
    known.past_boots = [past for past in known.past_boots if past != boot_id]
    known.save()
    apart = Machine.objects.create(boot_id=boot_id)
    _move(Q(machine=known, boot_id=boot_id), apart)
    return apart


def _move(hosts: Q, machine: Machine | None) -> None:
    """In id order, as whoever leases hosts locks them."""
    moving = Host.objects.filter(hosts).exclude(machine=machine)
    rows = moving.select_for_update(of=("self",)).order_by("pk").values_list("pk", flat=True)
    if not (moved := list(rows)):
        return
    Host.objects.filter(pk__in=moved).update(machine=machine)
    Machine.objects.filter(hosts=None).delete()


def lock_machines() -> None:
    """One look at a machine at a time: two that come from the same one must find each other.

    It lasts until the end of the transaction; whoever locks hosts as well asks for this first.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_MACHINES_LOCK])


def _one_address(name: str, *, look_up: bool) -> str:
    if not look_up:
        return name
    try:
        found = {written(str(place[0])) for *_, place in socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)}
    except (OSError, UnicodeError):
        return name
    return str(found.pop()) if len(found) == 1 else name
