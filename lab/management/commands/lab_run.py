"""Launches experiments of the library on this machine: BenchHub, hosts of the lab, and the verdicts at the end."""

from __future__ import annotations

import getpass
import os
import signal
import threading
import time
from argparse import ArgumentParser
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from agents.base.cpuset import parse_cpus
from benchhub.management.commands import up
from benchhub.supervisor import ADDRESS
from benchhub.terminal import Terminal
from experiments.asking.launching.launch import launch_experiment
from experiments.asking.library import catalogue
from experiments.asking.library.catalogue import TuningTemplate, template_or_tuning
from experiments.asking.library.install import Places, create, install
from experiments.asking.library.published import import_published
from experiments.asking.library.tuning_searches import plan_of
from experiments.asking.tunings.answer import answer_of
from experiments.asking.tunings.live import start_tuning
from experiments.judging.gate.decision import experiment_gate
from experiments.keeping.demo.records import ON_ONE_MACHINE, split_cpus
from experiments.models import Experiment, Host, Member, Role, Team, Tuning
from experiments.registry.errors import NotFound, RequestError
from experiments.registry.hosts.own_hosts import OwnHost, keep_own_host
from lab import loopback
from lab.demo_hosts import DemoHost, free_port
from lab.equip import Programs, Spot, equip
from lab.lab import Lab, LabHost, why_not
from lab.member_death import insist_on_a_member, left_behind, limits_of, run_with_a_death, story_of
from lab.shell import LabError
from lab.tomcat import VERSION, find_java_home

TEAM, USER, PASSWORD = "lab", "lab", "benchhub-lab"
"""Known to everyone, and of use only to whoever sits at this machine: the pages listen on its loopback address."""

WEB_PORT, SERVER_PORT = 8000, 8180
HOSTS = ("sut", "sut2", "driver")
DISK_BYTES = 1 << 30
LOOK_S = 1.0


class Command(up.Command):
    help = "Launch experiments of the library on hosts of this machine, scaled down, and print the verdicts."

    def add_arguments(self, parser: CommandParser | ArgumentParser) -> None:
        super().add_arguments(parser)  # type: ignore[arg-type]
        parser.set_defaults(port=None)
        parser.add_argument("names", nargs="+", metavar="NAME", help="an experiment or a tuning search of the library")
        parser.add_argument("--set", action="append", default=[], metavar="SETTING=VALUE", dest="given")
        parser.add_argument("--repetitions", type=int, help="of each variant, or runs of a search (as in the template)")
        parser.add_argument("--exit", action="store_true", help="stop when the last experiment has its verdict")
        parser.add_argument(
            "--kill", metavar="ROLE", help="then one run more, in whose middle this member of the system is killed"
        )
        parser.add_argument("--published", action="store_true", help="also import the published figures")
        for program in ("tomcat", "liberty", "rest-war", "jmeter"):
            parser.add_argument(f"--{program}", type=Path, help="where it is on this machine")

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.BENCHHUB_EMBEDDED:
            raise CommandError("The lab runs its own database; unset DATABASE_URL and REDIS_URL.")
        data_dir = Path(settings.BENCHHUB_DATA_DIR)
        cache = data_dir / "cache"
        self.programs = Programs(
            options["tomcat"] or cache / f"tomcat-{VERSION}.tar.gz",
            options["liberty"],
            options["rest_war"] or cache / "rest.war",
            options["jmeter"],
            catalogue.DIRECTORY / "node",
        )
        self.directory = data_dir / "lab"
        self.server_cpus, self.driver_cpus = _split_cpus()
        self.options = options
        self.failed = False
        try:
            self.templates = [template_or_tuning(name) for name in options["names"]]
            if options["port"] is None:
                options["port"] = free_port(ADDRESS, WEB_PORT)
            insist_on_a_member(options["kill"], self.templates)
            super().handle(*args, **options)
        except (LabError, NotFound) as error:
            raise CommandError(str(error)) from error
        if self.failed:
            raise CommandError("Not every experiment came to a verdict.")

    def prepared(self, terminal: Terminal) -> None:
        reason = why_not()
        root_only = [one.title for one in self.templates if one.needs.root]
        if reason is not None and root_only:
            raise LabError(f"{root_only[0]} changes settings of its host, so it needs hosts of its own. {reason}")
        systems = [one.title for one in self.templates if one.roles]
        if reason is not None and systems:
            raise LabError(f"{systems[0]} is a system of several hosts, each with a network of its own. {reason}")
        self.namespaces = reason is None
        if self.namespaces:
            members = dict.fromkeys(_host_of(role) for one in self.templates for role in one.roles)
            lab = Lab(self.directory, (*HOSTS, *members), disk_bytes=DISK_BYTES)
            lab.up()
            self.hosts: tuple[LabHost | DemoHost, ...] = lab.hosts()
        else:
            terminal.say("lab", f"plain sshd on loopback addresses: {reason}")
            self.hosts = loopback.up(self.directory / "loopback")
        terminal.say("lab", f"{len(self.hosts)} hosts: {', '.join(host.name for host in self.hosts)}")
        self._seed()

    def ready(self, terminal: Terminal, url: str) -> None:
        terminal.say("lab", f"BenchHub is ready: {url}   login {USER} / {PASSWORD}")
        threading.Thread(target=self._run_all, args=(terminal, url), daemon=True).start()

    def stopped(self) -> None:
        """The lab's own hosts go down; their disks and keys stay for the next start."""
        if not hasattr(self, "hosts"):
            return
        if self.namespaces:
            Lab(self.directory).down()
        else:
            loopback.down(self.directory / "loopback")

    def _seed(self) -> None:
        from django.contrib.auth import get_user_model

        team, _ = Team.objects.get_or_create(slug=TEAM, defaults={"name": "Lab", "thresholds": ON_ONE_MACHINE})
        user, created = get_user_model().objects.get_or_create(
            username=USER, defaults={"email": "lab@localhost.invalid", "is_staff": True}
        )
        if created:
            user.set_password(PASSWORD)
            user.save()
        self.member, _ = Member.objects.get_or_create(team=team, user=user, defaults={"role": Role.ADMIN})
        self.registered: dict[str, Host] = {}
        for host in self.hosts:
            role = Host.Roles.DRIVER if host.name == "driver" else Host.Roles.SUT
            if isinstance(host, LabHost):
                own = OwnHost(
                    host.name, host.address, host.port, "root", host.host_key, host.private_key, role, host.data_address
                )
            else:
                key = (self.directory / "loopback" / "client_key").read_text()
                own = OwnHost(host.name, host.address, host.port, getpass.getuser(), host.host_key, key, role)
            self.registered[host.name] = keep_own_host(self.member, own)

    def _run_all(self, terminal: Terminal, url: str) -> None:
        from django.db import close_old_connections

        try:
            if self.options["published"]:
                for name in catalogue.names("recorded"):
                    for run in import_published(self.member, catalogue.recorded(name)):
                        terminal.say(
                            "lab",
                            f"published: {url}t/{TEAM}/runs/{run.number}/   {run.labels['variant']}: {run.validity}",
                        )
            for template in self.templates:
                if isinstance(template, TuningTemplate):
                    self._tune(terminal, url, template)
                else:
                    self._run(terminal, url, template)
        except (LabError, RequestError) as error:
            self.failed = True
            terminal.warn("lab", str(error))
        finally:
            close_old_connections()
        if self.options["exit"]:
            os.kill(os.getpid(), signal.SIGTERM)
        else:
            terminal.say("lab", "Ctrl-C stops all of it; the results stay for the next start.")

    def _run(self, terminal: Terminal, url: str, template: Any) -> None:
        sut, driver = self.registered["sut"], self.registered["driver"]
        other = self.registered.get("sut2") if template.two_suts else None
        if template.two_suts and other is None:
            raise LabError(f"{template.title} compares two servers, and without namespaces the lab has only one.")
        ready = install(self.member, template, "small", self._settings(terminal, template))
        members = {role: self.registered[_host_of(role)] for role in template.roles}
        places = Places(sut, (driver,), other, members)
        experiment = create(self.member, ready, places, repetitions=self.options["repetitions"])
        page = f"{url}t/{TEAM}/experiments/{experiment.pk}/"
        runs = launch_experiment(self.member, experiment)
        terminal.say("lab", f"{template.title}: {len(runs)} runs, {page}")
        while experiment.state == Experiment.State.RUNNING:
            time.sleep(LOOK_S)
            experiment.refresh_from_db()
        gate = experiment_gate(experiment)
        terminal.say("lab", f"{template.title}: {gate.outcome}")
        for verdict in experiment.verdicts.filter(metric=experiment.primary_metric).order_by("candidate__position"):
            terminal.say("lab", f"  {verdict.candidate}: {verdict.sentence}")
        for run in experiment.runs.exclude(failure="").order_by("number"):
            terminal.warn("lab", f"  run #{run.number} ({run.variant}): {run.failure}")
        for sentence in limits_of(experiment):
            terminal.say("lab", f"  {sentence}")
        terminal.say("lab", f"  {page}")
        self.failed = self.failed or not experiment.verdicts.exists()
        if self.options["kill"] in template.roles:
            self._kill(terminal, experiment, self.options["kill"])

    def _kill(self, terminal: Terminal, experiment: Experiment, role: str) -> None:
        lab = Lab.found(self.directory)
        run = run_with_a_death(self.member, experiment, role, lab)
        terminal.say("lab", f"{experiment.name}, {role} killed in the middle of #{run.number}:")
        for sentence in story_of(run):
            terminal.say("lab", f"  {sentence}")
        left = left_behind(run, lab)
        for sentence in left:
            terminal.warn("lab", f"  {sentence}")
        if not left:
            terminal.say("lab", "  nothing of it is left on any host: no directory, no claim, no process")
        self.failed = self.failed or bool(left) or run.restore != run.Restore.VERIFIED

    def _tune(self, terminal: Terminal, url: str, template: TuningTemplate) -> None:
        ready = install(self.member, template, "small", self._settings(terminal, template))
        plan = plan_of(template, ready, Places(self.registered["sut"], (self.registered["driver"],)))
        plan = replace(plan, budget_runs=self.options["repetitions"] or plan.budget_runs, reduces=True)
        tuning = start_tuning(self.member, plan)
        page = f"{url}t/{TEAM}/experiments/tunings/{tuning.pk}/"
        terminal.say("lab", f"{template.title}: at most {tuning.budget_runs} runs, {page}")
        while tuning.state == Tuning.State.RUNNING:
            time.sleep(LOOK_S)
            tuning.refresh_from_db()
        for reason in answer_of(tuning).reasons:
            terminal.say("lab", f"  {reason}")
        terminal.say("lab", f"  {page}")
        self.failed = self.failed or not tuning.outcome

    def _settings(self, terminal: Terminal, template: Any) -> dict[str, Any]:
        wanted = template.settings()
        names = ("sut", "sut2") if template.two_suts else ("sut",)
        spots = {host.name: Spot.of(host) for host in self.hosts}
        terminal.say("lab", f"{template.title}: programs for {', '.join(names)} and driver")
        members = {role: spots[_host_of(role)] for role in template.roles}
        equipped = equip([spots[name] for name in names], spots["driver"], wanted, self.programs, members)
        values: dict[str, Any] = dict(equipped)
        if "java_home" in wanted:
            values["java_home"] = find_java_home(minimum=template.needs.java) or ""
        values |= {f"{role}_cpus": self.server_cpus for role in ("server", *template.roles)}
        values["driver_cpus"] = self.driver_cpus
        if not self.namespaces and "server_port" in wanted:
            values["server_port"] = free_port(self.registered["sut"].address, SERVER_PORT)
        for text in self.options["given"]:
            name, equals, value = text.partition("=")
            if not equals or name not in wanted:
                raise LabError(f"{text!r} is no setting of {template.title}; it has: {', '.join(sorted(wanted))}.")
            values[name] = value
        return {name: value for name, value in values.items() if name in wanted}


def _split_cpus() -> tuple[str, str]:
    """CPU sets for server and driver; BenchHub itself keeps to the driver's, so that the server's are left alone."""
    server, driver = split_cpus(tuple(sorted(os.sched_getaffinity(0))))
    if driver:
        os.sched_setaffinity(0, parse_cpus(driver))
    return server, driver


def _host_of(role: str) -> str:
    """The lab's host for a member with this role."""
    return role.replace("_", "-")
