"""Add your own hosts: what to do on a machine before and after it is added, and what the team's hosts lack."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from agents.running import host_commands
from agents.running.needs import INSTALL, NEEDS
from experiments.models import Host, Role
from experiments.registry.hosts import inventory
from frontend.shared.access import TeamRequest, team_view

EXAMPLE_USER = "bench"


@dataclass(frozen=True)
class Line:
    """A line to type on a host, and what it is for. `id` is its element on the page."""

    id: str
    what: str
    command: str


def lines_for(host: Host) -> list[Line]:
    """What makes a login for BenchHub on this host, for somebody with sudo there."""
    made = [
        Line("make-login", "Make the login, if there is none", host_commands.account(host.user)),
        Line("add-key", "Let BenchHub log in", host_commands.add_key(host.user, host.public_key)),
    ]
    if host.user != "root":
        made.append(Line("allow-sudo", "Let it act as root", host_commands.allow_sudo(host.user)))
    return made


@require_safe
@team_view()
def own_hosts(request: TeamRequest) -> HttpResponseBase:
    """The way from a machine of one's own to a host that runs start on, in order."""
    packages = [
        (command, " ".join(sorted({need.package(family) for need in NEEDS if not need.optional})))
        for family, command in INSTALL.items()
    ]
    hosts = list(Host.objects.for_team(request.team).with_state().defer("private_key", "jump__private_key"))
    context = {
        "user": EXAMPLE_USER,
        "account": host_commands.account(EXAMPLE_USER),
        "rule": host_commands.sudo_rule(EXAMPLE_USER),
        "allow_sudo": host_commands.allow_sudo(EXAMPLE_USER),
        "linger": host_commands.linger(EXAMPLE_USER),
        "by_root": host_commands.steps_by_root(),
        "packages": packages,
        "java": host_commands.JAVA,
        "tomcat": host_commands.TOMCAT,
        "load_tool": host_commands.LOAD_TOOL,
        "firewall": host_commands.FIREWALL,
        "hosts": hosts,
        "pending": any(host.last_check.get("state") == "pending" for host in hosts),
    }
    return render(request, "hosts/own.html", context)


@require_POST
@team_view(role=Role.LAUNCHER)
def check_hosts(request: TeamRequest) -> HttpResponseBase:
    """Test the connection of every host of the team."""
    hosts = list(Host.objects.for_team(request.team))
    for host in hosts:
        inventory.request_check(request.member, host)
    messages.success(request, f"Testing {len(hosts)} host{'' if len(hosts) == 1 else 's'}.")
    return redirect("own_hosts", request.team.slug)
