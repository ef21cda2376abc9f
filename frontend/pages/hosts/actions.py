"""What can be done with a host: test, check, approve its key, drain, restore, clear, grant, remove; one POST each."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib import messages
from django.http import HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from experiments.models import Host
from experiments.registry.errors import NotFound
from experiments.registry.hosts import inventory
from experiments.registry.hosts.canaries import request_canaries
from experiments.registry.hosts.removal import remove_host
from experiments.running.restoring import requests
from frontend.pages.hosts.views import get_host
from frontend.shared.access import TeamRequest, team_view
from frontend.shared.lookups import member_of
from frontend.shared.refusals import RefusalSaid

Action = Callable[[TeamRequest, Host], str]


def _check(request: TeamRequest, host: Host) -> str:
    inventory.request_check(request.member, host)
    return ""


def _canaries(request: TeamRequest, host: Host) -> str:
    request_canaries(request.member, host)
    return ""


def _approve(request: TeamRequest, host: Host) -> str:
    inventory.approve_key(request.member, host, request.POST.get("fingerprint", ""))
    return f"The key of {host.name} is approved."


def _drain(request: TeamRequest, host: Host) -> str:
    inventory.set_drained(request.member, host, True)
    return f"{host.name} is drained: no new run starts on it."


def _undrain(request: TeamRequest, host: Host) -> str:
    inventory.set_drained(request.member, host, False)
    return f"{host.name} takes runs again."


def _restore(request: TeamRequest, host: Host) -> str:
    requests.request_restore(request.member, host, force=request.POST.get("force") == "on")
    return ""


def _clear(request: TeamRequest, host: Host) -> str:
    inventory.clear_dirty(request.member, host, request.POST.get("reason", ""))
    return f"{host.name} is clean again; the reason is in the audit."


def _grant(request: TeamRequest, host: Host) -> str:
    other = member_of(request, request.POST.get("member", ""))
    inventory.grant(request.member, host, other)
    return f"{other.user} may launch on {host.name}."


def _revoke(request: TeamRequest, host: Host) -> str:
    other = member_of(request, request.POST.get("member", ""))
    inventory.revoke(request.member, host, other)
    return f"{other.user} may no longer launch on {host.name}."


def _remove(request: TeamRequest, host: Host) -> str:
    remove_host(request.member, host)
    return f"{host.name} is removed, with its key. Take BenchHub's public key off the host, if it was there."


ACTIONS: dict[str, Action] = {
    "check": _check,
    "canaries": _canaries,
    "approve": _approve,
    "drain": _drain,
    "undrain": _undrain,
    "restore": _restore,
    "clear": _clear,
    "grant": _grant,
    "revoke": _revoke,
    "remove": _remove,
}


@require_POST
@team_view()
def host_action(request: TeamRequest, pk: int, action: str) -> HttpResponseBase:
    """Do one action and return to the host's page, where there still is one. The use case decides whether one may."""
    host = get_host(request, pk)
    if action not in ACTIONS:
        raise NotFound(f"There is no action {action}.")
    with RefusalSaid(request):
        if done := ACTIONS[action](request, host):
            messages.success(request, done)
    return redirect("host", request.team.slug, host.pk) if host.pk else redirect("hosts", request.team.slug)
