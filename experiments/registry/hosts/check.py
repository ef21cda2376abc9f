"""The connection test of a host. Runs in workers only: here private keys are decrypted."""

from __future__ import annotations

import asyncio
import logging

from agents.base.clock import set_run_clock
from agents.base.errors import MISTAKE_HINT, AgentError
from agents.working.host_check import look_at
from agents.working.host_seen import Unfit
from experiments.models import Host
from experiments.registry.database_clock import database_clock
from experiments.registry.hosts.check_results import asked_of, put_off, store_failure, store_seen
from experiments.registry.hosts.host_keys import connect_args
from experiments.registry.hosts.installation import installation
from experiments.registry.hosts.machines import settle

logger = logging.getLogger(__name__)


def perform_check(host_id: int) -> None:
    """Test one host and store what it showed. Never raises for a host that cannot be reached.

    Without an approved key it only scans and offers the host's keys; with one it logs in, tries what a run needs there
    and reads the facts. Where the host shows another key than the approved one nobody logs in: its keys are offered.
    """
    host = Host.objects.select_related("jump", "leased_by", "site").filter(pk=host_id).first()
    if host is None or (host.site is not None and host.site.keys_stay):  # its site's worker asks for it
        return
    settle(host, look_up=True)
    if put_off(host):
        return
    try:
        set_run_clock(database_clock())
        _, private_key = connect_args(host)
        seen = asyncio.run(look_at(asked_of(host), private_key, installation()))
    except AgentError as error:
        store_failure(host, error.message, error.hint, error.findings if isinstance(error, Unfit) else ())
        return
    except Exception:  # the page waits for the row, and the check would be repeated for ever
        logger.exception("the connection test of host %s", host.pk)
        store_failure(host, "BenchHub made a mistake in testing this host.", MISTAKE_HINT)
        return
    store_seen(host, seen)
