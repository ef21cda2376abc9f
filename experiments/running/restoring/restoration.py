"""Putting a dirty host back once more. Runs in workers; `requests` asks for it."""

from __future__ import annotations

import logging

from asgiref.sync import async_to_sync
from django.conf import settings

from agents.base.errors import MISTAKE_HINT, FenceError
from agents.working.execution import restore
from agents.working.lease import HandedOver
from experiments.models import Host
from experiments.registry.hosts.driver_sets import hosts_by_role
from experiments.registry.workers.outbox import RESTORE_HOST, send
from experiments.running.executing.claimed_run import claimed
from experiments.running.executing.database_store import DatabaseStore
from experiments.running.restoring.attempts import begin, fail, finish, refuse

logger = logging.getLogger(__name__)


def perform_restore(host_id: int) -> None:
    """Put the host back as the run that left it dirty found it, and prove it. Runs in workers; safe to repeat."""
    if Host.objects.filter(pk=host_id, site__keys_stay=True).exists():
        return  # its site's worker asks for it
    begun = begin(host_id)
    if begun is None:
        return
    run, fence, force = begun.run, begun.run.fence, begun.force
    roles = tuple(role for role, pk in hosts_by_role(run).items() if pk == host_id)
    try:
        restored = async_to_sync(restore)(claimed(run), DatabaseStore(run), roles, force=force)
    except HandedOver:
        logger.info("host %s: handed over", host_id)
        send(RESTORE_HOST, host_id, settings.BENCHHUB_SITE)
    except FenceError as error:
        logger.warning("host %s: %s", host_id, error)
        refuse(host_id, fence, error)
    except Exception:
        logger.exception("host %s could not be put back, in a way that nobody foresaw", host_id)
        fail(host_id, fence, "BenchHub made a mistake in putting this host back.", MISTAKE_HINT)
    else:
        finish(host_id, fence, restored, roles)
