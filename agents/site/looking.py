"""Reading the hosts of a run that is not made, by the worker of their site."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from agents.base.errors import MISTAKE_HINT, AgentError
from agents.site.door import Door
from agents.site.keys import Keys
from agents.site.wire import DryRunGiven, Kept, PlanRead
from agents.spec import RunSpec
from agents.working.dry_run import read_plan

logger = logging.getLogger(__name__)


def read_for_plan(given: DryRunGiven, door: Door, keys: Keys, libraries: Path | None) -> None:
    """Read the hosts and tell the centre. StoreAway when it is away: it asks again for what was not told."""
    door.ask(Kept, "POST", f"/dry-runs/{given.id}/plan", _read(given, keys, libraries))


def _read(given: DryRunGiven, keys: Keys, libraries: Path | None) -> PlanRead:
    try:
        addresses = {role: way.plain() for role, way in given.ways.items()}
        logins = {role: (address, keys.of(address.name)) for role, address in addresses.items()}
        return PlanRead(plan=asyncio.run(read_plan(RunSpec.model_validate(given.spec), logins, libraries)))
    except AgentError as error:
        return PlanRead(failure=error.message, hint=error.hint)
    except Exception:
        logger.exception("dry run %s", given.id)
        return PlanRead(failure="BenchHub made a mistake in looking at the hosts.", hint=MISTAKE_HINT)
