"""A fleet under way: hosts, workers and runs come up, pages are timed, a site is cut, workers are killed, all ends."""

from __future__ import annotations

import contextlib
import os
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.db.models.functions import Now

from agents.remote.address import new_key_pair
from bench.fleet.judged import Ended, Measured
from bench.fleet.pages import Pages
from bench.fleet.seeding import Fleet, queue_runs, seed_hosts
from bench.fleet.site_plan import SitePlan
from bench.fleet.sites import SiteProcesses
from bench.fleet.workers import WEB_LOG, SiteDoor, Workers, times_of
from bench.sshd import free_port
from bench.website import Website, website
from benchhub.embedded import Places
from experiments.models import Host, Run, Site, Worker
from experiments.registry.teams.tokens import issue_for_site

SITES = ("berlin", "oslo", "turin")
LOOK_S = 1.0
LEASE_S = 60
START_S = 900.0
STEADY_S = 60.0
AFTERWARDS_S = 1800.0
"""How long, after the last load, the runs may take to come to their end on a busy machine."""
LIVE = (Run.State.WARMING_UP, Run.State.MEASURING)


@dataclass(frozen=True)
class Plan:
    """The sizes of a measurement; `threads` of a worker, `workers` of a site, `beginning` of all."""

    hosts: int
    sites: int
    live: int
    queued: int
    workers: int
    threads: int
    load_s: int
    cut_s: float
    heartbeat_s: int
    interval_s: float
    requests: int
    pull: bool
    beginning: int


class Play:
    """One measurement, from an empty database to what was seen."""

    def __init__(self, plan: Plan, folder: Path, say: Callable[[str], None]) -> None:
        self.plan = plan
        self.folder = folder
        self.found = Measured(plan.hosts, plan.sites, plan.workers * plan.sites, plan.live, plan.queued)
        self._say = say
        self._began_s = time.monotonic()

    def say(self, text: str) -> None:
        self._say(f"{time.monotonic() - self._began_s:6.0f} s, load {os.getloadavg()[0]:.1f}: {text}")

    def run(self) -> Measured:
        call_command("migrate", verbosity=0)
        call_command("createcachetable", verbosity=0)
        with contextlib.ExitStack() as running:
            host_key, public = new_key_pair("fleet host")
            web = None
            if self.plan.requests or self.plan.pull:
                times = times_of(LEASE_S, self.plan.heartbeat_s)
                web = running.enter_context(website(self.folder / WEB_LOG, times))
            plans = self._site_plans(host_key, web)
            fleet = seed_hosts(plans, " ".join(public.split()[:2]), keys_stay=self.plan.pull)
            live, waiting = queue_runs(
                fleet, self.plan.live, self.plan.queued, load_s=self.plan.load_s, interval_s=self.plan.interval_s
            )
            self.say(f"{len(fleet.pairs)} pairs of hosts, {len(live)} runs and {len(waiting)} behind them")
            sites = [SiteProcesses.start(plan, self.folder) for plan in plans]
            for site in sites:
                running.callback(site.close)
                site.wait_until_they_answer()
            pages = Pages(web.url, fleet) if web is not None and self.plan.requests else None
            workers = Workers.of_installation(self.folder, lease_s=LEASE_S, heartbeat_s=self.plan.heartbeat_s)
            running.callback(workers.close)
            self._start(workers, plans, fleet)
            idle_bytes = workers.memory_bytes()
            if pages is not None:
                self.found.quiet_ms = pages.times_ms(self.plan.requests)
            self._ramp(fleet, live)
            self._steady(workers, sites, pages, idle_bytes)
            self._clear(waiting)
            if self.plan.cut_s:
                self._disturb(workers, sites)
            self._come_to_rest(live, workers)
            self._conclude(live, workers, sites)
        return self.found

    def _site_plans(self, host_key: str, web: Website | None) -> list[SitePlan]:
        file = self.folder / "host_key"
        file.touch(mode=0o600)
        file.write_text(host_key)
        places = Places(Path(settings.BENCHHUB_DATA_DIR))
        database, broker = str(places.sockets / ".s.PGSQL.5432"), str(places.redis_socket)
        of_site = self.plan.hosts // self.plan.sites
        port = free_port("127.0.0.1")
        plans = []
        for number, name in enumerate(SITES[: self.plan.sites]):
            addresses = tuple(f"127.{50 + number}.{at // 250}.{2 + at % 250}" for at in range(of_site))
            plan = SitePlan(name, addresses, port, str(file))
            if web is not None and self.plan.pull:
                plan = replace(plan, web_port=port + 10 + number, web_target=urlsplit(web.url).port or 0)
            else:
                first = port + 10 + 2 * number
                plan = replace(
                    plan,
                    database_port=first,
                    database_socket=database,
                    broker_port=first + 1,
                    broker_socket=broker,
                )
            plans.append(plan)
        return plans

    def _start(self, workers: Workers, plans: list[SitePlan], fleet: Fleet) -> None:
        for plan, site in zip(plans, fleet.sites, strict=True):
            if self.plan.pull:
                door = self._door(fleet, site)
                workers.start_pulling_site(plan, self.plan.workers, self.plan.threads, door)
            else:
                workers.start_site(plan, self.plan.workers, self.plan.threads)
        places = Places(Path(settings.BENCHHUB_DATA_DIR))
        workers.start_centre(f"postgresql://benchhub@/benchhub?host={places.sockets}", settings.REDIS_URL)
        end_s = time.monotonic() + START_S
        while Worker.objects.count() < len(workers.of_runs) + 1:  # and the one for short work
            if time.monotonic() > end_s:
                raise SystemExit(f"The workers did not start within {START_S:.0f} s; see their logs.")
            time.sleep(LOOK_S)
        self.say("workers started")

    def _door(self, fleet: Fleet, site: Site) -> SiteDoor:
        """The files of a site whose workers fetch their runs."""
        keys, token_file = self.folder / f"keys-{site.name}", self.folder / f"token-{site.name}"
        keys.mkdir()
        (keys / "default").touch(mode=0o600)
        (keys / "default").write_text(fleet.private_key)
        _, text = issue_for_site(fleet.member, site, name=f"workers of {site.name}")
        token_file.write_text(text)
        return SiteDoor(token_file, keys)

    def _ramp(self, fleet: Fleet, live: list[int]) -> None:
        """Until every run is under load: so many hosts come into service that `beginning` runs are on their way."""
        began_s = time.monotonic()
        end_s = began_s + self.plan.load_s
        opened = 0
        while (there := self._under_load(live)) < len(live):
            pairs = fleet.pairs[opened : there + self.plan.beginning]
            hosts = [host.pk for pair in pairs for host in pair]
            opened += len(pairs)
            Host.objects.filter(pk__in=hosts).update(state=Host.State.READY)
            if time.monotonic() > end_s:
                self.say(f"only {there} of {len(live)} runs are under load at once: the loads are too short")
                break
            self._tell_now_and_then(f"{there} of {len(live)} under load")
            time.sleep(LOOK_S)
        self.found.live = there
        Host.objects.filter(state=Host.State.DRAINED).update(state=Host.State.READY)
        self.found.ramp_s = time.monotonic() - began_s
        self.say(f"{there} runs under load")

    def _under_load(self, live: list[int]) -> int:
        return Run.objects.filter(pk__in=live, state__in=LIVE).count()

    def _steady(self, workers: Workers, sites: list[SiteProcesses], pages: Pages | None, idle_bytes: int) -> None:
        """What all live runs cost while nothing is broken."""
        found, before = self.found, sum(site.ask("tell")["statements"] for site in sites)
        cpu_s, began_s = workers.cpu_s(), time.monotonic()
        time.sleep(STEADY_S)
        took_s = time.monotonic() - began_s
        if not self.plan.pull:
            found.statements_per_s = (sum(site.ask("tell")["statements"] for site in sites) - before) / took_s
        found.worker_cpu_ratio = (workers.cpu_s() - cpu_s) / took_s
        if pages is not None:
            found.live_ms = pages.times_ms(self.plan.requests)
        owners = Run.objects.filter(state__in=LIVE).values_list("owner", flat=True)
        held = Counter(owner.rpartition(":")[0] for owner in owners)
        found.most_of_one_worker = max(held.values(), default=0)
        found.bytes_per_run = (workers.memory_bytes() - idle_bytes) / max(1, found.live)
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'")
            found.connections = cursor.fetchone()[0]
        found.load_average = os.getloadavg()[0]
        self.say(f"steady: {found.worker_cpu_ratio:.2f} cores of workers, {found.bytes_per_run / 1e6:.2f} MB a run")

    def _clear(self, waiting: list[int]) -> None:
        """The runs behind them have done their part: the claims were made among them. None is begun meanwhile."""
        ended = {"state": Run.State.FINISHED, "outcome": Run.Outcome.CANCELLED, "finished_at": Now()}
        Run.objects.filter(pk__in=waiting, state=Run.State.QUEUED).update(**ended)

    def _disturb(self, workers: Workers, sites: list[SiteProcesses]) -> None:
        cut = sites[0]
        self.say(f"{cut.plan.name} is cut")
        cut.ask("cut")
        began_s = time.monotonic()
        for site in sites:
            workers.kill(f"{site.plan.name}-0")
        self.found.killed = len(sites)
        self.say("a worker of each site is killed")
        while time.monotonic() - began_s < self.plan.cut_s:
            time.sleep(LOOK_S)
        cut.ask("mend")
        self.found.cut_s = time.monotonic() - began_s
        self.say(f"{cut.plan.name} is back")

    def _come_to_rest(self, live: list[int], workers: Workers) -> None:
        end_s = time.monotonic() + self.plan.load_s + AFTERWARDS_S
        while left := Run.objects.filter(pk__in=live).exclude(state=Run.State.FINISHED).count():
            if time.monotonic() > end_s:
                self.say(f"{left} runs did not come to their end")
                return
            self._tell_now_and_then(f"{left} runs left, workers {len(workers.living())}")
            time.sleep(LOOK_S)
        self.say("all runs have ended")

    def _conclude(self, live: list[int], workers: Workers, sites: list[SiteProcesses]) -> None:
        names = ("number", "state", "outcome", "restore", "attempts", "failure")
        self.found.ended = [Ended(*row) for row in Run.objects.filter(pk__in=live).values_list(*names)]
        self.found.hosts_not_free = Host.objects.exclude(state=Host.State.READY, leased_by=None).count()
        self.found.told = [site.ask("tell") for site in sites]
        self.found.claims_ms = workers.claims_ms()

    def _tell_now_and_then(self, text: str) -> None:
        if int(time.monotonic() - self._began_s) % 20 == 0:
            self.say(text)


def play(plan: Plan, folder: Path, say: Callable[[str], None]) -> Measured:
    """Set everything up in `folder`, measure, and leave nothing running."""
    return Play(plan, folder, say).run()
