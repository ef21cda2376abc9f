"""Two hosts to play with on this machine: real sshd, real settings of their own, and links that can be broken."""

from __future__ import annotations

import argparse
import getpass
import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from agents.remote.address import fingerprint
from experiments.management import base
from experiments.models import Host, Member, Role, Team
from experiments.registry.errors import Conflict
from experiments.registry.hosts.own_hosts import OwnHost, keep_own_host
from lab import loopback
from lab.claims import ADDRESS_PREFIX
from lab.demo_hosts import DemoHost
from lab.lab import Lab, LabError, LabHost, why_not

FAULTS = {
    "cut": "nothing gets through to it or from it, and nobody is told",
    "heal": "its links are whole",
    "crash": "its power is off: no process, no goodbye",
    "boot": "its power is on, with a new boot_id",
    "reboot": "it went off and on, with a new boot_id",
}
HALF_OPEN = "it hears everybody, and nobody hears it"


class Command(base.Command):
    help = "Hosts on this machine to try BenchHub with: up, down, status, cut, heal, crash, boot, reboot, exec."

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        up = actions.add_parser("up", help="make and start the hosts; says how to use them")
        up.add_argument("--hosts", default="sut,driver", help="Names of the hosts (sut,driver).")
        up.add_argument("--cpus", type=int, default=8, help="CPUs that a host shows and lets you switch off (8).")
        up.add_argument(
            "--register", metavar="TEAM", help="Add the hosts to this team (its short name), ready for runs."
        )
        up.add_argument("--loopback", action="store_true", help="Plain sshd on loopback addresses, as without root.")
        down = actions.add_parser("down", help="end everything that up started")
        down.add_argument("--purge", action="store_true", help="Forget the keys too.")
        actions.add_parser("status", help="what is on, and what is broken")
        for name, text in FAULTS.items():
            fault = actions.add_parser(name, help=f"afterwards {text}")
            fault.add_argument("host")
            if name == "cut":
                fault.add_argument("--half-open", action="store_true", help=f"Only one way: {HALF_OPEN}.")
        run = actions.add_parser("exec", help="run a command on a host without SSH, also while its link is cut")
        run.add_argument("host")
        run.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND ...")

    def handle(self, *args: Any, action: str, **options: Any) -> None:
        self.directory = Path(settings.BENCHHUB_DATA_DIR) / "lab"
        self.plain_directory = self.directory / "loopback"
        try:
            if action == "up":
                self._up(options)
            elif action == "down":
                self._down(purge=options["purge"])
            elif action == "status":
                self._status()
            elif action == "exec":
                self._exec(options["host"], options["command"])
            else:
                self._fault(action, options)
        except LabError as error:
            raise CommandError(str(error)) from error

    def _up(self, options: dict[str, Any]) -> None:
        reason = "You asked for it." if options["loopback"] else why_not()
        if reason is None:
            lab = Lab(self.directory, options["hosts"].split(","), cpus=options["cpus"])
            lab.up()
            self.stdout.write(
                f"The lab is up: {len(lab.names)} hosts, each with its own network, processes and settings."
            )
            hosts: tuple[LabHost | DemoHost, ...] = lab.hosts()
            login, also = "root", f", or {lab.hosts()[0].plain_user} without root's rights"
        else:
            hosts = loopback.up(self.plain_directory)
            login, also = getpass.getuser(), ""
            self.stdout.write(
                f"Plain sshd on loopback addresses: {reason} Both share this machine's processes and settings, "
                "and their links cannot be broken."
            )
        for host in hosts:
            self.stdout.write(
                f"  {host.name:8} {host.address} port {host.port}   host key {fingerprint(host.host_key)}"
            )
            if isinstance(host, LabHost):
                self.stdout.write(f"  {'':8} {host.data_address} is its data address, between the hosts")
        key = self._key(hosts[0])
        self.stdout.write(f"  user     {login}{also}\n  key      {key}   (private: paste it where a host is added)")
        if options["register"]:
            self._register(hosts, login, key, options["register"])
        else:
            self.stdout.write(
                "Next: add the hosts under Hosts with these, test the connection and compare the host key;\n"
                "or `manage.py lab up --register TEAM` does that. `manage.py lab down` ends it."
            )

    def _register(self, hosts: tuple[LabHost | DemoHost, ...], login: str, key: Path, slug: str) -> None:
        member = Member.objects.filter(team__slug=slug, role=Role.ADMIN).order_by("pk").first()
        if member is None:
            known = ", ".join(Team.objects.order_by("slug").values_list("slug", flat=True)) or "none yet"
            raise CommandError(f"There is no team {slug} with an administrator. Teams: {known}.")
        names = []
        for host in hosts:
            roles = {"sut": Host.Roles.SUT, "driver": Host.Roles.DRIVER}.get(host.name, Host.Roles.BOTH)
            data_address, prefix = (host.data_address, ADDRESS_PREFIX) if isinstance(host, LabHost) else ("", "")
            own = OwnHost(
                host.name, host.address, host.port, login, host.host_key, key.read_text(), roles, data_address, prefix
            )
            try:
                names.append(keep_own_host(member, own).name)
            except Conflict:  # the team's own sut, or the demo's, stays what it is
                names.append(keep_own_host(member, replace(own, name=f"lab-{own.name}")).name)
        self.stdout.write(
            f"{' and '.join(names)} are hosts of the team {slug} now, ready for runs: open Hosts, or launch one."
        )

    def _down(self, *, purge: bool) -> None:
        loopback.down(self.plain_directory)
        if os.geteuid() == 0:
            Lab(self.directory).down(purge=purge)
        self.stdout.write("The lab is down; hosts that you added to BenchHub cannot be reached until it is up again.")

    def _status(self) -> None:
        for plain in loopback.running(self.plain_directory):
            self.stdout.write(f"{plain.name:8} on   {plain.address} port {plain.port}   (loopback)")
        if not (self.directory / "names").exists():
            if not loopback.running(self.plain_directory):
                self.stdout.write("There is no lab; `manage.py lab up` makes one.")
            return
        lab = Lab.found(self.directory)
        if not lab.is_claimed:
            self.stdout.write("The lab is down; `manage.py lab up` starts it.")
            return
        for host in lab.hosts():
            state = f"on   {host.address} port {host.port}   boot {host.boot_id}" if host.init else "off"
            self.stdout.write(f"{host.name:8} {state}")
        for fault in lab.faults():
            self.stdout.write(f"broken: {fault}")

    def _fault(self, action: str, options: dict[str, Any]) -> None:
        lab, host = Lab.found(self.directory), options["host"]
        if action == "cut":
            lab.cut(host, half_open=options["half_open"])
        else:
            {"heal": lab.heal, "crash": lab.crash, "boot": lab.boot, "reboot": lab.reboot}[action](host)
        self.stdout.write(f"{host}: {HALF_OPEN if options.get('half_open') else FAULTS[action]}.")

    def _exec(self, name: str, words: list[str]) -> None:
        argv = words[1:] if words[:1] == ["--"] else words
        if not argv:
            raise CommandError("Say which command: manage.py lab exec sut hostname")
        done = subprocess.run(Lab.found(self.directory).host(name).inside(argv), env={}, check=False)
        if done.returncode:
            raise CommandError(f"{argv[0]} ended with {done.returncode}.", returncode=done.returncode)

    def _key(self, host: LabHost | DemoHost) -> Path:
        return host.private_key_file if isinstance(host, LabHost) else self.plain_directory / "client_key"
