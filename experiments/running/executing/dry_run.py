"""A dry run on the hosts: connect, read, and make the plan with the exact commands. Runs in workers."""

from __future__ import annotations

import asyncio
import logging

from django.conf import settings

from agents.base.errors import MISTAKE_HINT, AgentError
from agents.spec import RunSpec
from agents.working.dry_run import read_plan
from experiments.registry.hosts.host_keys import connect_args
from experiments.running.executing.dry_run_rows import fail, finish, hosts_of, put_off, waiting

logger = logging.getLogger(__name__)


def perform_dry_run(dry_run_id: int) -> None:
    """Read all hosts and store the plan, or why it cannot be made. Runs in workers; safe to repeat."""
    ours = waiting().exclude(sut__site__keys_stay=True)  # those are asked for by the workers of their sites
    dry_run = ours.filter(pk=dry_run_id).first()
    if dry_run is None or put_off(dry_run):
        return
    try:
        spec = RunSpec.model_validate(dry_run.spec)
        logins = {role: connect_args(host) for role, host in hosts_of(dry_run).items()}
        plan = asyncio.run(read_plan(spec, logins, settings.BENCHHUB_PROFILERS))
    except AgentError as error:
        fail(dry_run_id, error.message, error.hint)
    except Exception:  # nobody would ever see it: the page waits for the row
        logger.exception("dry run %s", dry_run_id)
        fail(dry_run_id, "BenchHub made a mistake in looking at the hosts.", MISTAKE_HINT)
    else:
        finish(dry_run_id, plan)
