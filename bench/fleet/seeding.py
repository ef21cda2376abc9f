"""The fleet as rows: a team, its hosts in pairs at sites, and the runs that wait for them."""

from __future__ import annotations

import getpass
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.db.models.functions import Now

from agents.facts.access import parse
from agents.facts.described import COMMANDS, read_machine
from agents.remote.address import new_key_pair
from bench.fleet.commands import PROGRAM
from bench.fleet.simulated import identity
from bench.fleet.site_plan import SitePlan
from experiments.asking.launching.choices import Choice
from experiments.asking.launching.factory import CARRIED
from experiments.asking.launching.launch import launch_run
from experiments.models import Application, Host, Member, Recipe, Role, Run, Site, Team, Workload
from experiments.registry.documents.versions import save_version
from experiments.registry.hosts.host_keys import key_row, public_half
from experiments.registry.hosts.keys import seal
from experiments.registry.hosts.machines import place_of, recognise
from experiments.registry.hosts.profiles import described_profiles
from experiments.registry.hosts.sites import add_site
from experiments.registry.runs.numbers import reserve_numbers

SLUG = "fleet"
BATCH = 500
SERVER = {
    "kind": "command",
    "argv": [PROGRAM],
    "files": {"index.html": "hello\n"},
    "port": 18080,
    "ready": {"body_contains": "hello", "timeout_s": 600},
}
TOOL = {"kind": "wrk", "connections": 2, "threads": 1, "binary": "/opt/fleet/wrk"}


@dataclass(frozen=True)
class Fleet:
    """The rows that a measurement works with; the hosts of a pair stand beside each other."""

    member: Member
    user: User
    pairs: tuple[tuple[Host, Host], ...]
    sites: tuple[Site, ...]
    private_key: str


def seed_hosts(plans: Sequence[SitePlan], host_key: str, *, keys_stay: bool = False) -> Fleet:
    """A team with all hosts of the sites, their key approved, as if each had passed its connection test: with its
    hardware, which is that of the machine that plays it.

    They are out of service, so that no run begins before everything is there. With `keys_stay` none has a private key.
    """
    user = get_user_model().objects.create_user(SLUG, email=f"{SLUG}@localhost.invalid")
    most = sum(len(plan.addresses) for plan in plans) // 2
    team = Team.objects.create(slug=SLUG, name="Fleet", quota_live_runs=most)  # no limit but the hosts
    member = Member.objects.create(team=team, user=user, role=Role.ADMIN)
    sites = {plan.name: add_site(plan.name, keys_stay=keys_stay) for plan in plans}
    private_key, _ = new_key_pair("fleet login")
    public = public_half(private_key)
    rows = [
        Host(
            team=team,
            name=plan.host_name(at),
            address=address,
            port=plan.ssh_port,
            user=getpass.getuser(),
            host_key=host_key,
            public_key="" if keys_stay else public,
            state=Host.State.DRAINED,
            site=sites[plan.name],
            last_check={"state": "ok", "message": "", "hint": "", "at": "2026-01-01T00:00:00+00:00"},
        )
        for plan in plans
        for at, address in enumerate(plan.addresses)
    ]
    hosts = Host.objects.bulk_create(rows, batch_size=BATCH)
    for host in hosts:
        host.place = place_of(host)
        host.private_key = b"" if keys_stay else seal(private_key, row=key_row(host))
    Host.objects.bulk_update(hosts, ["private_key", "place"], batch_size=BATCH)
    for host in hosts:
        machine_id, boot_id = identity(host.name)
        recognise(host.pk, parse(f"user={host.user}\nmachine_id={machine_id}\nboot_id={boot_id}\n".encode()))
    machine = read_machine(subprocess.run(["sh", "-c", COMMANDS], capture_output=True, text=True, check=True).stdout)
    profile = described_profiles(team, [machine])[machine.digest()]
    Host.objects.filter(team=team).update(profile=profile, last_seen_at=Now())
    pairs = list(zip(hosts[::2], hosts[1::2], strict=True))
    pairs.sort(key=lambda pair: pair[0].name.rpartition("-")[2])  # the sites take turns
    return Fleet(member, user, tuple(pairs), tuple(sites.values()), private_key)


def queue_runs(fleet: Fleet, live: int, queued: int, *, load_s: int, interval_s: float) -> tuple[list[int], list[int]]:
    """The ids of the runs that shall live, one for each pair, and of those that wait behind them on the same pairs.

    The monitors of these runs read every `interval_s` seconds instead of every second.
    """
    workload = {"driver": TOOL, "path": "/", "phases": [{"name": "load", "kind": "measure", "duration_s": load_s}]}
    member = fleet.member
    application = save_version(member, Application, "server", {"server": SERVER})
    recipe = save_version(member, Recipe, "as it is", {"steps": []})
    load = save_version(member, Workload, "load", workload)
    pairs = fleet.pairs[:live]
    runs = [launch_run(member, Choice(application, recipe, load, sut, [driver], {})) for sut, driver in pairs]
    for run in runs:
        run.spec = {**(run.spec or {}), "monitor_interval_s": interval_s}
    Run.objects.bulk_update(runs, ["spec"], batch_size=BATCH)
    first = reserve_numbers(member.team, queued) if queued else 0
    waiting = [
        Run(**{name: getattr(runs[at % len(runs)], name) for name in CARRIED}, number=first + at)
        for at in range(queued)
    ]
    stored = Run.objects.bulk_create(waiting, batch_size=BATCH)
    return [run.pk for run in runs], [run.pk for run in stored]
