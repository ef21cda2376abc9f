"""Proof on a real host, by the operator's hand: what no test machine can stand for."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from asgiref.sync import async_to_sync
from django.core.management.base import CommandError

from agents.base.errors import AgentError
from agents.base.installation import Installation
from agents.base.session import Session
from agents.remote.ssh import connect
from agents.running.proof import HostProof, Proof
from experiments.management.host_command import HostCommand
from experiments.models import Host
from experiments.registry.hosts.host_keys import connect_args
from experiments.registry.hosts.installation import installation
from experiments.registry.hosts.machines import sisters_of, who_uses
from experiments.running.queue.dispatch import next_fence

_MARKS = {True: "proven", False: "FAILED", None: "-"}


class Command(HostCommand):
    help = (
        "Prove on one of your hosts that jobs survive a lost connection, that tuning is undone, and that the host puts "
        "itself back. Drain the host first; with --restart it is also restarted."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--restart", action="store_true", help="restart the host in the middle of a run's work")

    def handle(self, *_arguments: Any, host: str, team: str, restart: bool, **_options: Any) -> None:
        found = self.named_host(host, team)
        if found.state != Host.State.DRAINED or found.leased_by_id is not None:
            raise CommandError(f"{host} is in service; drain it on its page first, and wait for its run to end.")
        if used := who_uses(found, sisters_of([found]).of(found.pk)):
            raise CommandError(f"{used}; wait until that is over.")
        try:
            proven = async_to_sync(_prove)(found, next_fence(), installation(), self._tell, restart)
        except AgentError as error:
            raise CommandError(f"{error.message} {error.hint}".strip()) from error
        if not proven:
            raise CommandError(f"Do not trust {host} with tuning before this is solved.")

    def _tell(self, proof: Proof) -> None:
        self.stdout.write(f"{_MARKS[proof.passed]:7} {proof.promise}: {proof.detail}")


async def _prove(host: Host, fence: int, here: Installation, tell: Any, restart: bool) -> bool:
    async def log_in() -> Session:
        return await connect(*connect_args(host))

    return await HostProof(host.name, log_in, fence, here).prove(tell, restart=restart)
