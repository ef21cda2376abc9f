"""Reservations of hosts: made, given another end, and ended. Each is one POST; the hosts' pages show them."""

from __future__ import annotations

from django import forms
from django.contrib import messages
from django.http import HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from experiments.models import Host, Reservation, Role
from experiments.registry.errors import NotFound, RequestError
from experiments.registry.hosts import reservations
from experiments.registry.hosts.reservations import clock
from frontend.pages.hosts.reservation_forms import ExtendForm, ReservationForm
from frontend.shared.access import TeamRequest, team_view
from frontend.shared.query import id_in
from frontend.shared.refusals import RefusalSaid


@require_POST
@team_view(role=Role.LAUNCHER)
def reserve(request: TeamRequest) -> HttpResponseBase:
    """Keep hosts for the member's own runs."""
    form = ReservationForm(request.team, request.POST)
    with RefusalSaid(request):
        _refuse_wrong(form)
        starts_at, until = form.times()
        hosts, reason = list(form.cleaned_data["hosts"]), form.cleaned_data["reason"]
        made = reservations.reserve(request.member, hosts, until=until, starts_at=starts_at, reason=reason)
        names = ", ".join(host.name for host in hosts)
        messages.success(request, f"{names}: reserved for you until {clock(made.until)}.")
    return _back(request)


@require_POST
@team_view(role=Role.LAUNCHER)
def extend(request: TeamRequest, pk: int) -> HttpResponseBase:
    """A later end for one's own reservation."""
    found, form = _find(request, pk), ExtendForm(request.POST)
    with RefusalSaid(request):
        _refuse_wrong(form)
        reservations.extend(request.member, found, form.until(found.until))
        messages.success(request, f"The reservation lasts until {clock(found.until)}.")
    return _back(request)


@require_POST
@team_view(role=Role.LAUNCHER)
def end(request: TeamRequest, pk: int) -> HttpResponseBase:
    """Give the hosts back; an admin may do it for others."""
    found = _find(request, pk)
    with RefusalSaid(request):
        reservations.end(request.member, found)
        messages.success(request, "The reservation is over.")
    return _back(request)


def _find(request: TeamRequest, pk: int) -> Reservation:
    found = Reservation.objects.for_team(request.team).select_related("member__user").filter(pk=pk).first()
    if found is None:
        raise NotFound("There is no such reservation.")
    reservation: Reservation = found
    return reservation


def _refuse_wrong(form: forms.Form) -> None:
    """The first thing that is wrong with the form, in words for the page that it came from."""
    if form.is_valid():
        return
    name, errors = next(iter(form.errors.items()))
    label = form.fields[name].label or name.capitalize()
    raise RequestError(f"{label}: {errors[0]}", field=name)


def _back(request: TeamRequest) -> HttpResponseBase:
    """To the page of the host that the form names as `back`, else to the list."""
    pk = id_in(request.POST.get("back", ""))
    if pk is not None and Host.objects.for_team(request.team).filter(pk=pk).exists():
        return redirect("host", request.team.slug, pk)
    return redirect("hosts", request.team.slug)
