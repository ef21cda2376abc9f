"""Hosts that a person keeps for themselves for a while. An expired reservation simply does not count any more."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from django.conf import settings
from django.db import transaction
from django.db.models import Prefetch
from django.db.models.functions import Now
from django.utils import timezone

from experiments.models import CENTRAL, Host, Member, Reservation, Role, Team
from experiments.models.teams import TeamOwnedQuerySet
from experiments.registry.database_clock import database_now
from experiments.registry.errors import Conflict, Forbidden, RequestError
from experiments.registry.hosts.machines import OF_OTHERS, sisters_of
from experiments.registry.teams import audit
from experiments.registry.teams.access import require, require_launch_on
from experiments.registry.workers.outbox import hint

MAX_REASON = 200


@dataclass(frozen=True)
class Hold:
    """One host's share of a reservation."""

    host_id: int
    user_id: int
    username: str
    starts_at: datetime
    until: datetime
    reason: str

    def holds_at(self, moment: datetime) -> bool:
        return self.starts_at <= moment < self.until

    @property
    def words(self) -> str:
        """Who has it until when, and why: "anna until 16:30 UTC (profiling)"."""
        reason = f" ({self.reason})" if self.reason else ""
        return f"{self.username} until {clock(self.until)}{reason}"


def reserved(host: Host, sisters: Iterable[Host], hold: Hold) -> str:
    """Who keeps the host, or the machine under another name, in words without a full stop."""
    sister = next((one for one in sisters if one.pk == hold.host_id), None)
    if sister is None:
        return f"{host.name} is reserved by {hold.words}"
    if sister.team_id == host.team_id:
        return f"{host.name} is the same machine as {sister.name}, which is reserved by {hold.words}"
    return f"{host.name} is the same machine as {OF_OTHERS}, which is reserved until {clock(hold.until)}"


def clock(moment: datetime) -> str:
    """A time as sentences name it: without the date when it is today."""
    local = timezone.localtime(moment)
    shown = "%H:%M %Z" if local.date() == timezone.localdate() else "%Y-%m-%d %H:%M %Z"
    return local.strftime(shown)


def holds_on(host_ids: Collection[int], *, after: datetime | None = None) -> list[Hold]:
    """What holds or will hold these hosts after that time (now by default), the earliest first. One query."""
    rows = (
        Reservation.hosts.through.objects.filter(host__in=host_ids, reservation__until__gt=after or Now())
        .order_by("reservation__starts_at", "reservation_id")
        .values_list(
            "host_id",
            "reservation__member__user_id",
            "reservation__member__user__username",
            "reservation__starts_at",
            "reservation__until",
            "reservation__reason",
        )
    )
    return [Hold(*row) for row in rows]


def holding_now(hosts: Iterable[Host]) -> dict[int, Hold]:
    """Host -> who keeps it at this moment."""
    now = database_now()
    holds = holds_on([host.pk for host in hosts], after=now)
    return {hold.host_id: hold for hold in holds if hold.holds_at(now)}


def current(team: Team) -> TeamOwnedQuerySet:
    """The team's reservations that hold or will hold, with all that a list of them shows."""
    found = Reservation.objects.for_team(team).filter(until__gt=Now())
    return (
        found.select_related("member__user")
        .prefetch_related(Prefetch("hosts", Host.objects.named().order_by("name")))
        .order_by("starts_at", "id")
    )


def reserve(
    member: Member,
    hosts: Sequence[Host],
    *,
    until: datetime,
    starts_at: datetime | None = None,
    reason: str = "",
) -> Reservation:
    """Keep these hosts for the member. A run that is active there when it begins goes on to its end."""
    require(member, Role.LAUNCHER)
    if not hosts:
        raise RequestError("Name at least one host.", field="hosts")
    require_launch_on(member, *hosts)
    now = database_now()
    begins = max(starts_at or now, now)
    reason = _checked_reason(reason)
    _check_times(begins, until)
    with transaction.atomic():
        _lock(host.pk for host in hosts)
        _refuse_overlap(member, hosts, begins, until)
        made = Reservation.objects.create(
            team_id=member.team_id, member=member, starts_at=begins, until=until, reason=reason
        )
        made.hosts.set(hosts)
        audit.record(member, "reservation.make", _subject(made), after=_described(made))
    return made


def extend(member: Member, reservation: Reservation, until: datetime) -> None:
    """Another end for the member's own reservation, later or earlier; it is still one of the allowed length."""
    if reservation.member_id != member.pk:
        raise Forbidden(f"This reservation is {reservation.member.user.get_username()}'s.")
    with transaction.atomic():
        hosts = list(reservation.hosts.order_by("pk"))
        _lock(host.pk for host in hosts)
        require_launch_on(member, *hosts)
        locked = _still_open(reservation)
        before = _described(locked)
        _check_times(locked.starts_at, until)
        if until <= database_now():
            raise RequestError("The new end is in the past; end the reservation instead.", field="until")
        _refuse_overlap(member, hosts, locked.starts_at, until)
        locked.until = until
        locked.save(update_fields=["until"])
        audit.record(member, "reservation.extend", _subject(locked), before=before, after=_described(locked))
    reservation.refresh_from_db()


def end(member: Member, reservation: Reservation) -> None:
    """Give the hosts back now. One's own, or as an admin anybody's: the audit trail says who did it."""
    if reservation.member_id != member.pk:
        require(member, Role.ADMIN)
    require(member, Role.LAUNCHER)
    with transaction.atomic():
        _lock(reservation.hosts.values_list("pk", flat=True))
        locked = _still_open(reservation)
        before = _described(locked)
        locked.until = database_now()
        locked.starts_at = min(locked.starts_at, locked.until)
        locked.save(update_fields=["starts_at", "until"])
        audit.record(member, "reservation.end", _subject(locked), before=before)
        for site in set(locked.hosts.values_list("site__name", flat=True)):
            transaction.on_commit(partial(hint, 0, site or CENTRAL), robust=True)  # somebody's run may start now
    reservation.refresh_from_db()


def _lock(host_ids: Iterable[int]) -> None:
    """One change at a time on these hosts, in id order as everywhere."""
    list(Host.objects.select_for_update(of=("self",)).filter(pk__in=list(host_ids)).order_by("pk").values_list("pk"))


def _still_open(reservation: Reservation) -> Reservation:
    locked: Reservation = Reservation.objects.select_related("member__user").get(pk=reservation.pk)
    if locked.until <= database_now():
        raise Conflict("This reservation is over.")
    return locked


def _refuse_overlap(member: Member, hosts: Sequence[Host], begins: datetime, until: datetime) -> None:
    same = sisters_of(hosts)
    of_hold = {one.pk: host for host in hosts for one in (*same.of(host.pk), host)}
    for hold in holds_on(list(of_hold), after=begins):
        if hold.user_id != member.user_id and hold.starts_at < until:
            since = "" if hold.starts_at <= database_now() else f" from {clock(hold.starts_at)}"
            host = of_hold[hold.host_id]
            words = reserved(host, same.of(host.pk), hold).replace("is reserved", f"is reserved{since}")
            raise Conflict(f"{words}.", field="hosts")


def _check_times(begins: datetime, until: datetime) -> None:
    if until <= begins:
        raise RequestError("The reservation must end after it begins.", field="until")
    longest = timedelta(days=settings.BENCHHUB_RESERVATION_DAYS)
    if until - begins > longest:
        raise RequestError(f"A reservation is at most {longest.days} days long.", field="until")
    if begins > database_now() + longest:
        raise RequestError(f"A reservation begins within {longest.days} days.", field="starts_at")


def _checked_reason(reason: str) -> str:
    reason = reason.strip()
    if len(reason) > MAX_REASON or not reason.isprintable():
        raise RequestError(f"A reason is one line of at most {MAX_REASON} characters.", field="reason")
    return reason


def _subject(reservation: Reservation) -> str:
    return f"reservation of {', '.join(reservation.hosts.order_by('name').values_list('name', flat=True))}"


def _described(reservation: Reservation) -> dict[str, str]:
    return {
        "member": reservation.member.user.get_username(),
        "from": reservation.starts_at.isoformat(timespec="seconds"),
        "until": reservation.until.isoformat(timespec="seconds"),
        "reason": reservation.reason,
    }
