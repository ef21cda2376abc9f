"""The connection test of a host. Runs in workers only: here private keys are decrypted."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from django.db import transaction
from django.utils import timezone

from agents import facts
from agents.base.errors import MISTAKE_HINT, AgentError
from agents.remote.address import HostKey
from agents.remote.ssh import connect, scan_host_key
from experiments.models import Host
from experiments.registry.hosts.host_keys import connect_args, fingerprint
from experiments.registry.hosts.inventory import check_state
from experiments.registry.hosts.profiles import store_profile

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Seen:
    """What a test brought: the offered key of a new host, or the facts of a known one."""

    offered: HostKey | None = None
    found: facts.HostFacts | None = None


def perform_check(host_id: int) -> None:
    """Test one host and store what it showed. Never raises for a host that cannot be reached.

    Without an approved key it only scans and offers the host's key; with one it logs in and reads the facts.
    """
    host = Host.objects.select_related("jump", "leased_by").filter(pk=host_id).first()
    if host is None:
        return
    if host.leased_by is not None:  # a login beside a measurement is load of our own
        message = f"Run #{host.leased_by.number} was using this host, so BenchHub did not log in beside it."
        Host.objects.filter(pk=host.pk).update(
            last_check=check_state("ok", message, "Test it again when the run has ended.")
        )
        return
    try:
        seen = asyncio.run(_look(host))
    except AgentError as error:
        _store_failure(host, error.message, error.hint)
        return
    except Exception:  # the page waits for the row, and the check would be repeated for ever
        logger.exception("the connection test of host %s", host.pk)
        _store_failure(host, "BenchHub made a mistake in testing this host.", MISTAKE_HINT)
        return
    if seen.offered is not None:
        _store_offer(host, seen.offered)
    elif seen.found is not None:
        _store_facts(host, seen.found)


async def _look(host: Host) -> _Seen:
    address, private_key = connect_args(host)
    if not host.host_key:
        if address.jump is None:
            return _Seen(offered=await scan_host_key(address.address, address.port))
        jump = await connect(address.jump, private_key)
        try:
            return _Seen(offered=await scan_host_key(address.address, address.port, jump))
        finally:
            await jump.close()
    session = await connect(address, private_key)
    try:
        return _Seen(found=await facts.collect(session))
    finally:
        await session.close()


def _store_failure(host: Host, message: str, hint: str) -> None:
    with transaction.atomic():
        locked = Host.objects.select_for_update(of=("self",)).get(pk=host.pk)
        locked.last_check = check_state("failed", message, hint)
        if locked.state == Host.State.READY:
            locked.state, locked.state_reason = Host.State.UNREACHABLE, message
        locked.save(update_fields=["last_check", "state", "state_reason"])


def _store_offer(host: Host, offered: HostKey) -> None:
    message = f"The host shows the key {fingerprint(offered.line)}."
    hint = "Compare it with `ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub` on the host's console, then approve it."
    Host.objects.filter(pk=host.pk, host_key="").update(
        offered_host_key=offered.line, last_check=check_state("ok", message, hint), last_seen_at=timezone.now()
    )


def _store_facts(host: Host, found: facts.HostFacts) -> None:
    with transaction.atomic():
        locked = Host.objects.select_for_update(of=("self",)).get(pk=host.pk)
        store_profile(locked, found.digest(), found.profile())
        if locked.state == Host.State.UNREACHABLE:
            locked.state, locked.state_reason = Host.State.READY, ""
        unread = "".join(f" Not read: {kind} ({problem})." for kind, problem in found.unread.items())
        locked.last_check = check_state("ok", f"Logged in and read {len(found.profile())} facts.{unread}")
        locked.save(update_fields=["state", "state_reason", "last_check"])
