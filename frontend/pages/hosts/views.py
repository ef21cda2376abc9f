"""Hosts: the list, adding one, and the page of one with what it showed over time."""

from __future__ import annotations

import shlex
from typing import Any

from django.contrib import messages
from django.db.models import Prefetch
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from agents.running import host_commands
from experiments.judging.evidence.host_canaries import host_history
from experiments.models import Host, HostGrant, HostProfile, Role, Run
from experiments.registry.documents.configuration import diff
from experiments.registry.errors import NotFound, RequestError
from experiments.registry.hosts import inventory
from experiments.registry.hosts.host_keys import pinned_key, shown_keys
from experiments.registry.hosts.machines import same_machine_as, sisters_of, who_uses
from experiments.registry.hosts.reservations import current, holding_now
from experiments.registry.teams.access import may_launch_on
from frontend.pages.hosts.forms import HostForm, NewHostForm
from frontend.pages.hosts.own import lines_for
from frontend.pages.hosts.reservation_forms import ReservationForm
from frontend.shared.access import TeamRequest, team_view
from frontend.shared.hardware import groups, headline
from frontend.shared.preflight import host_checks
from frontend.shared.refusals import refuse
from frontend.shared.typed import take_typed

MAX_HISTORY = 50
IN_LIST = (
    "name",
    "is_demo",
    "user",
    "address",
    "port",
    "state",
    "state_reason",
    "roles",
    "last_seen_at",
    "profile_id",
    "leased_by__number",
    "site__name",
)
"""What the list shows of a host: there may be a thousand, and most of a row is texts for the host's own page."""


@require_safe
@team_view()
def host_list(request: TeamRequest) -> HttpResponseBase:
    """Every host with its state, hardware and who uses or keeps it; the number of queries does not grow with them."""
    hosts = list(
        Host.objects.for_team(request.team)
        .select_related("leased_by", "site")
        .prefetch_related("profile")  # its facts are read once for all hosts that are alike
        .only(*IN_LIST)
        .order_by("name")
    )
    holds = holding_now(hosts)
    headlines = {host.profile.pk: headline(host.profile.facts) for host in hosts if host.profile}
    rows = [{"host": host, "headline": headlines.get(host.profile_id), "hold": holds.get(host.pk)} for host in hosts]
    context = {"rows": rows, "reservations": current(request.team), **_reservation(request)}
    return render(request, "hosts/list.html", context | {"now": timezone.now()})


@require_http_methods(["GET", "POST"])
@team_view(role=Role.EDITOR)
def host_new(request: TeamRequest) -> HttpResponseBase:
    """Add a host and go on to its page, which leads through the rest."""
    form = NewHostForm(request.team, request.POST or None)
    if request.method == "POST" and form.is_valid():
        address, port = form.cleaned_data["address"]
        try:
            host = inventory.add_host(
                request.member,
                name=form.cleaned_data["name"],
                address=address,
                port=port,
                user=form.cleaned_data["user"],
                roles=form.cleaned_data["roles"],
                data_address=form.cleaned_data["data_address"],
                jump=form.cleaned_data["jump"],
                site=form.cleaned_data.get("site"),
                private_key=form.cleaned_data["private_key"].replace("\r\n", "\n") or None,
            )
            inventory.request_check(request.member, host)
        except RequestError as error:
            refuse(form, error)
        else:
            return redirect("host", request.team.slug, host.pk)
    return render(request, "hosts/new.html", {"form": form}, status=422 if form.errors else 200)


@require_safe
@team_view()
def host_page(request: TeamRequest, pk: int) -> HttpResponseBase:
    """State, what to do next, facts, grants and history. The page asks for itself while a check is pending."""
    host = get_host(request, pk)
    return _page(request, host)


@require_http_methods(["GET", "POST"])
@team_view(role=Role.EDITOR)
def host_edit(request: TeamRequest, pk: int) -> HttpResponseBase:
    """Change a host's address, role, jump host or labels. Another way to it is tested at once."""
    host = get_host(request, pk)
    initial = {
        name: getattr(host, name) for name in ("name", "user", "roles", "data_address", "labels", "link_templates")
    }
    initial |= {"address": (host.address, host.port), "jump": host.jump_id, "site": host.site_id}
    form = HostForm(request.team, host, request.POST or None, initial=initial)
    if request.method == "POST" and form.is_valid():
        changes = dict(form.cleaned_data)
        changes["address"], changes["port"] = form.cleaned_data["address"]
        try:
            changed = inventory.update_host(request.member, host, **changes)
            if _way_in(changed) != _way_in(host):
                inventory.request_check(request.member, changed)
        except RequestError as error:
            refuse(form, error)
        else:
            messages.success(request, f"{changes['name']} is saved.")
            return redirect("host", request.team.slug, host.pk)
    return render(request, "hosts/edit.html", {"host": host, "form": form}, status=422 if form.errors else 200)


def _way_in(host: Host) -> tuple[object, ...]:
    """What a login to the host takes, but for keys."""
    return host.address, host.port, host.user, host.jump_id, host.site_id


@require_safe
@team_view()
def profile_diff(request: TeamRequest, pk: int) -> HttpResponseBase:
    """What differs between two profiles of the host: `?a=<id>&b=<id>` of its history, the last two by default."""
    host = get_host(request, pk)
    history = _history(host)
    by_id = {str(entry.pk): entry for entry in history}
    newer = by_id.get(request.GET.get("b", ""), history[0] if history else None)
    older = by_id.get(request.GET.get("a", ""), history[1] if len(history) > 1 else newer)
    if newer is None or older is None:
        raise NotFound(f"{host.name} has not shown its hardware yet.")
    found = diff([older.profile.facts, newer.profile.facts], asked=lambda _path: False)
    context = {
        "host": host,
        "history": history,
        "older": older,
        "newer": newer,
        "differences": (*found.drift, *found.noise),
    }
    return render(request, "hosts/diff.html", context)


def get_host(request: TeamRequest, pk: int) -> Host:
    """A host of the team with all that its page shows. NotFound for another team's."""
    wide = ("spec", "findings", "metrics")
    hidden = ["private_key", "jump__private_key"]
    hidden += [f"{run}__{name}" for run in ("leased_by", "dirty_run") for name in wide]
    host: Host | None = Host.objects.for_team(request.team).with_state().defer(*hidden).filter(pk=pk).first()
    if host is None:
        raise NotFound("There is no such host.")
    return host


def _page(request: TeamRequest, host: Host) -> HttpResponse:
    history = _history(host)
    granted = HostGrant.objects.filter(host=host).select_related("member__user").order_by("member__user__username")
    members = request.team.members.select_related("user").prefetch_related(
        Prefetch("grants", HostGrant.objects.filter(host=host))
    )
    sisters = sisters_of([host]).of(host.pk)
    context = {
        "host": host,
        "mine": [one for one in sisters if one.team_id == host.team_id],
        "same_machine": same_machine_as(host, sisters),
        "used": who_uses(host, sisters, besides=host.leased_by_id),
        "headline": headline(host.profile.facts if host.profile else {}),
        "groups": groups(host.profile.facts) if host.profile else [],
        "history": history,
        "offered": shown_keys(host.offered_host_key),
        "pinned": pinned_key(host),
        "install": install_command(host),
        "lines": lines_for(host),
        "grants": granted,
        "may_be_granted": [m for m in members if not m.grants.all() and m.role != Role.ADMIN and m.role != Role.VIEWER],
        "admins": [m for m in members if m.role == Role.ADMIN],
        "hold": holding_now([host]).get(host.pk),
        "reservations": current(request.team).filter(hosts=host),
        **_reservation(request, host),
        "now": timezone.now(),
        "may_launch": may_launch_on(request.member, host),
        "checks": host_checks(request.member, host),
        "runs": Run.objects.for_team(request.team).with_names().filter(sut=host).order_by("-number")[:5],
        "canaries": host_history(host),
        "pending": any(
            one.get("state") == "pending" for one in (host.last_check, host.last_restore, host.last_canaries)
        ),
    }
    return render(request, "hosts/page.html", context)


def _reservation(request: TeamRequest, host: Host | None = None) -> dict[str, Any]:
    """The form, with what was typed into it, for this host, when that was refused."""
    typed = take_typed(request, reverse("reserve", args=[request.team.slug]))
    if typed and host and str(host.pk) not in typed.all.get("hosts", ()):
        typed = None
    initial = dict(typed.value) if typed else None
    return {"form": ReservationForm(request.team, auto_id="reserve_%s", initial=initial), "typed": typed}


def install_command(host: Host) -> str:
    """One line that puts the public key on the host, for somebody who can log in to it."""
    port = f"-p {host.port} " if host.port != 22 else ""
    target = shlex.quote(f"{host.user}@{host.address}")
    return f"echo {shlex.quote(host.public_key)} | ssh {port}{target} {shlex.quote(host_commands.APPEND_KEY)}"


def _history(host: Host) -> list[HostProfile]:
    return list(host.profile_history.select_related("profile")[:MAX_HISTORY])
