"""The demonstration: BenchHub, two hosts on this machine, and a real experiment that starts by itself."""

from __future__ import annotations

import getpass
import os
from argparse import ArgumentParser
from ipaddress import ip_network
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from benchhub.environment import is_installed
from benchhub.management.commands import up
from benchhub.supervisor import ADDRESS, ChildSpec
from benchhub.terminal import Terminal
from experiments.keeping.demo.records import DemoMachine, seed, split_cpus, start
from lab.demo_hosts import FIRST_SUT_PORT, DemoHost, free_port, kept_port, prepare_hosts, switch_off
from lab.shell import LabError
from lab.tomcat import VERSION, find_java_home, install_tomcat

PASSWORD = "benchhub-demo"  # noqa: S105
"""Known to everyone, and of use only to whoever sits at this machine: the pages listen on its loopback address."""

HOST_NETWORKS = ("127.0.0.0/8", "::1/128")
"""Where the hosts of the demonstration are: on this machine's loopback, which an installation keeps from its hosts."""

WEB_PORT = 8000
SERVER_PORT = 8180


class Command(up.Command):
    help = "Start BenchHub with two hosts on this machine and compare two ways to run a Tomcat. Ctrl-C stops all of it."

    port_was_chosen: bool
    sut: DemoHost
    driver: DemoHost
    private_key: str

    def add_arguments(self, parser: CommandParser | ArgumentParser) -> None:
        super().add_arguments(parser)  # type: ignore[arg-type]
        parser.set_defaults(port=None)
        parser.add_argument("--archive", type=Path, help=f"The release archive of Tomcat {VERSION}.")

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.BENCHHUB_EMBEDDED:
            raise CommandError("The demonstration runs its own database; unset DATABASE_URL and REDIS_URL.")
        _allow_hosts_here()
        data_dir = Path(settings.BENCHHUB_DATA_DIR)
        self.archive = options["archive"] or data_dir / "cache" / f"tomcat-{VERSION}.tar.gz"
        try:
            self.port_was_chosen = options["port"] is None
            if self.port_was_chosen:
                options["port"] = free_port(ADDRESS, WEB_PORT)
            super().handle(*args, **options)
        except LabError as error:
            raise CommandError(str(error)) from error

    def children(self, port: int) -> tuple[ChildSpec, ...]:
        """Two hosts beside BenchHub itself."""
        self.sut, self.driver, self.private_key = prepare_hosts(Path(settings.BENCHHUB_DATA_DIR) / "demo")
        return (*super().children(port), self.sut.child(), self.driver.child())

    def prepared(self, terminal: Terminal) -> None:
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
        me = "benchhub demo" if is_installed(settings.BASE_DIR) else "bin/demo"
        moved = self.port_was_chosen and urlsplit(url).port != WEB_PORT
        lines = (
            "BenchHub is ready.",
            f"  address  {url}" + (f"   (port {WEB_PORT} was taken)" if moved else ""),
            f"  login    demo / {PASSWORD}",
            f"  open     {url}{self.page}   (the experiment on this machine)",
            f"  Ctrl-C or {me} --stop ends it; {me} --reset forgets everything.",
        )
        self._announcement().write_text("\n".join(lines) + "\n")
        for line in lines:
            terminal.say("demo", line)

    def stopped(self) -> None:
        self._announcement().unlink(missing_ok=True)
        for host in (self.sut, self.driver):
            switch_off(host)

    def _announcement(self) -> Path:
        """What `bin/demo` shows to those who ask where the demonstration runs; there while it is ready."""
        return Path(settings.BENCHHUB_DATA_DIR) / "demo" / "announcement"

    def _server_port(self) -> int:
        """The port that Tomcat will have, kept, so that the application does not get a new version at each start.

        As far from the usual one as that of the host's sshd: another demonstration has its Tomcat only while it runs.
        """
        first = SERVER_PORT + self.sut.port - FIRST_SUT_PORT
        return kept_port(self.sut.directory / "server_port", self.sut.address, first)


def _allow_hosts_here() -> None:
    """For this process and those that it starts, beside what the environment allows."""
    networks = [*settings.BENCHHUB_HOST_NETWORKS, *map(ip_network, HOST_NETWORKS)]
    settings.BENCHHUB_HOST_NETWORKS = list(dict.fromkeys(networks))
    os.environ["BENCHHUB_HOST_NETWORKS"] = ",".join(map(str, settings.BENCHHUB_HOST_NETWORKS))
