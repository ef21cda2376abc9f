"""Short checks of a host that somebody asked for on its page or by the API. Runs in workers."""

from __future__ import annotations

import asyncio
import logging

from agents.base.errors import MISTAKE_HINT, AgentError, HostInUse
from agents.base.installation import Installation
from agents.remote import survey
from agents.remote.address import Address
from agents.remote.ssh import connect
from agents.running.canary_checks import CanaryReading, check_host
from experiments.models import Host
from experiments.registry.hosts.canaries import keep_readings
from experiments.registry.hosts.host_keys import connect_args
from experiments.registry.hosts.installation import installation
from experiments.registry.hosts.inventory import check_state
from experiments.registry.workers.outbox import hint
from experiments.running.queue.dispatch import hold_for_canaries, let_go_after_canaries

logger = logging.getLogger(__name__)

_LATER = "Check it again when that has ended."


def perform_canaries(host_id: int) -> None:
    """Check one host and store what that gave. Never beside a run: no run starts on it meanwhile. Safe to repeat."""
    host = Host.objects.select_related("jump").filter(pk=host_id, last_canaries__state="pending").first()
    if host is None:
        return
    if busy := hold_for_canaries(host):
        _store(host_id, "failed", busy, _LATER)
        return
    try:
        readings = asyncio.run(_check(host.name, *connect_args(host), installation()))
        keep_readings(readings, {"sut": host_id})
    except AgentError as error:
        _store(host_id, "failed", error.message, error.hint)
    except Exception:  # the page waits for the row, and the check would be repeated for ever
        logger.exception("the checks of host %s", host_id)
        _store(host_id, "failed", "BenchHub made a mistake in checking this host.", MISTAKE_HINT)
    else:
        problems = " ".join(f"{one.check}: {one.problem}" for one in readings if one.problem)
        _store(host_id, "ok", "The host was checked.", problems)
    finally:
        let_go_after_canaries(host_id)
        hint(0)  # a run may wait for it


async def _check(name: str, address: Address, private_key: str, here: Installation) -> tuple[CanaryReading, ...]:
    session = await connect(address, private_key)
    try:
        surveyed = await survey.read(session)
        living = [claim for claim in surveyed.claims if claim.lives and claim.installation.id != here.id]
        if living:
            raise HostInUse(f"{name} is used by {living[0]} now.", hint=_LATER)
        return await check_host(session, "sut", disk=True)
    finally:
        await session.close()


def _store(host_id: int, state: str, message: str, hint_text: str = "") -> None:
    Host.objects.filter(pk=host_id).update(last_canaries=check_state(state, message, hint_text))
