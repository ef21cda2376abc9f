"""Reservations: hosts that a member keeps for their own runs for a while."""

from __future__ import annotations

from django.http import HttpRequest
from ninja import Router
from ninja.responses import Status
from pydantic import AwareDatetime, BaseModel, Field

from experiments.api.finding import named_hosts
from experiments.api.plumbing.auth import LAUNCH, READ, member_of
from experiments.api.plumbing.idempotency import idempotent
from experiments.api.plumbing.paging import paged
from experiments.api.shapes import Body
from experiments.models import Member, Reservation
from experiments.registry.errors import NotFound
from experiments.registry.hosts import reservations

router = Router(auth=READ, tags=["reservations"])


class ReservationOut(BaseModel):
    id: int
    hosts: list[str]
    member: str
    reason: str
    starts_at: AwareDatetime
    until: AwareDatetime

    @classmethod
    def of(cls, reservation: Reservation) -> ReservationOut:
        return cls(
            id=reservation.pk,
            hosts=sorted(host.name for host in reservation.hosts.all()),
            member=reservation.member.user.get_username(),
            reason=reservation.reason,
            starts_at=reservation.starts_at,
            until=reservation.until,
        )


class ReservationIn(Body):
    hosts: list[str] = Field(min_length=1, max_length=100)
    until: AwareDatetime = Field(description="With its offset from UTC: 2026-08-01T16:30:00Z")
    starts_at: AwareDatetime | None = Field(None, description="Now, when it is left out")
    reason: str = Field("", max_length=reservations.MAX_REASON)


class ReservationChange(Body):
    until: AwareDatetime


@router.get("", response=list[ReservationOut])
@paged
def list_reservations(request: HttpRequest) -> list[ReservationOut]:
    """What holds now and what will; past ones are in the audit trail."""
    return [ReservationOut.of(found) for found in reservations.current(member_of(request).team)]


@router.post("", response={201: ReservationOut}, auth=LAUNCH)
@idempotent
def create_reservation(request: HttpRequest, payload: ReservationIn) -> Status[ReservationOut]:
    """Keep hosts for yourself: until then only your own runs start there."""
    member = member_of(request)
    names = list(dict.fromkeys(payload.hosts))
    hosts = named_hosts(member, names, field="hosts")
    made = reservations.reserve(member, hosts, until=payload.until, starts_at=payload.starts_at, reason=payload.reason)
    return Status(201, _shown(member, made.pk))


@router.patch("/{int:reservation_id}", response=ReservationOut, auth=LAUNCH)
def change_reservation(request: HttpRequest, reservation_id: int, payload: ReservationChange) -> ReservationOut:
    """Another end for your own reservation."""
    member = member_of(request)
    reservations.extend(member, _find(member, reservation_id), payload.until)
    return _shown(member, reservation_id)


@router.post("/{int:reservation_id}/end", response=ReservationOut, auth=LAUNCH)
@idempotent
def end_reservation(request: HttpRequest, reservation_id: int) -> Status[ReservationOut]:
    """Give the hosts back now: your own, or as an admin somebody else's."""
    member = member_of(request)
    reservations.end(member, _find(member, reservation_id))
    return Status(200, _shown(member, reservation_id))


def _find(member: Member, reservation_id: int) -> Reservation:
    found = Reservation.objects.for_team(member.team).select_related("member__user").filter(pk=reservation_id).first()
    if found is None:
        raise NotFound(f"There is no reservation {reservation_id}.")
    reservation: Reservation = found
    return reservation


def _shown(member: Member, reservation_id: int) -> ReservationOut:
    return ReservationOut.of(_find(member, reservation_id))
