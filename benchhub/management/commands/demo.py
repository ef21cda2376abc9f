"""The demonstration: BenchHub, two hosts on this machine, and a real experiment that starts by itself."""

from __future__ import annotations

import getpass
import os
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from benchhub.demo.hosts import DemoError, DemoHost, free_port, prepare_hosts, switch_off
from benchhub.demo.tomcat import VERSION, find_java_home, install_tomcat
from benchhub.management.commands import up
from benchhub.supervisor import ChildSpec
from benchhub.terminal import Terminal

PASSWORD = "benchhub-demo"  # noqa: S105
"""Known to everyone, and of use only to whoever sits at this machine: the pages listen on its loopback address."""

SERVER_PORT = 8180


class Command(up.Command):
    help = "Start BenchHub with two hosts on this machine and run the Tomcat baseline on them. Ctrl-C stops all of it."

    sut: DemoHost
    driver: DemoHost
    private_key: str

    def add_arguments(self, parser: CommandParser | ArgumentParser) -> None:
        super().add_arguments(parser)  # type: ignore[arg-type]
        parser.add_argument("--archive", type=Path, help=f"The release archive of Tomcat {VERSION}.")

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.BENCHHUB_EMBEDDED:
            raise CommandError("The demonstration runs its own database; unset DATABASE_URL and REDIS_URL.")
        data_dir = Path(settings.BENCHHUB_DATA_DIR)
        self.archive = options["archive"] or data_dir / "cache" / f"tomcat-{VERSION}.tar.gz"
        try:
            self.sut, self.driver, self.private_key = prepare_hosts(data_dir / "demo")
            super().handle(*args, **options)
        except DemoError as error:
            raise CommandError(str(error)) from error

    def more_children(self) -> tuple[ChildSpec, ...]:
        return (self.sut.child(), self.driver.child())

    def prepared(self, terminal: Terminal) -> None:
        from experiments.demo import DemoMachine, seed, split_cpus, start

        for host in (self.sut, self.driver):
            switch_off(host)  # what a crash of the machine's last demonstration may have left
        terminal.say("demo", f"Tomcat {VERSION} for the SUT")
        tomcat = install_tomcat(self.archive, self.sut.home)
        sut_cpus, driver_cpus = split_cpus(tuple(sorted(os.sched_getaffinity(0))))
        machine = DemoMachine(
            sut_address=self.sut.address,
            sut_port=self.sut.port,
            sut_host_key=self.sut.host_key,
            driver_address=self.driver.address,
            driver_port=self.driver.port,
            driver_host_key=self.driver.host_key,
            login_user=getpass.getuser(),
            private_key=self.private_key,
            tomcat_home=str(tomcat.resolve()),
            java_home=find_java_home(),
            server_port=self._server_port(),
            sut_cpus=sut_cpus,
            driver_cpus=driver_cpus,
        )
        terminal.say("demo", "team, hosts, recipes, workload and history")
        experiment = seed(machine, PASSWORD)
        if start(experiment):
            terminal.say("demo", f"experiment {experiment.name}: {experiment.runs.count()} runs queued")
        self.page = f"t/{experiment.team.slug}/experiments/{experiment.pk}/"

    def ready(self, terminal: Terminal, url: str) -> None:
        terminal.say("demo", "BenchHub is ready.")
        terminal.say("demo", f"  address  {url}")
        terminal.say("demo", f"  login    demo / {PASSWORD}")
        terminal.say("demo", f"  open     {url}{self.page}   (the experiment that is running now)")
        terminal.say("demo", "  Ctrl-C or bin/demo --stop ends it; bin/demo --reset forgets everything.")

    def stopped(self) -> None:
        for host in (self.sut, self.driver):
            switch_off(host)

    def _server_port(self) -> int:
        """The port that Tomcat will have, kept, so that the application does not get a new version at each start."""
        kept = self.sut.directory / "server_port"
        if not kept.exists():
            kept.write_text(str(free_port(self.sut.address, SERVER_PORT)))
        return int(kept.read_text())
