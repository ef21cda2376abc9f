"""The test of a host's connection by the worker of its site."""

from __future__ import annotations

import asyncio
import dataclasses
import logging

from agents.base.clock import RunClock, set_run_clock
from agents.base.errors import MISTAKE_HINT, AgentError
from agents.base.installation import Installation
from agents.site.door import Door
from agents.site.keys import Keys
from agents.site.wire import Clock, Finding, HostGiven, HostSeen, Kept
from agents.working.host_check import look_at
from agents.working.host_seen import HostAsked, Unfit

logger = logging.getLogger(__name__)


def check_host(given: HostGiven, door: Door, keys: Keys) -> None:
    """Look at the host and tell the centre. StoreAway when it is away: it asks again for what was not told."""
    set_run_clock(RunClock.read(lambda: door.ask(Clock, "GET", "/clock").unix_s))
    door.ask(Kept, "POST", f"/hosts/{given.id}/seen", _seen(given, keys))


def _seen(given: HostGiven, keys: Keys) -> HostSeen:
    address = given.way.plain()
    asked = HostAsked(address, given.serves, given.drives, given.servers)
    here = Installation(given.installation_id, given.installation_name)
    try:
        needs_key = bool(address.host_key) or address.jump is not None
        private_key = keys.of(address.name) if needs_key else ""
        seen = asyncio.run(look_at(asked, private_key, here))
    except AgentError as error:
        told = error.findings if isinstance(error, Unfit) else ()
        findings = [Finding(**dataclasses.asdict(one)) for one in told]
        return HostSeen(asked_at=given.asked_at, failure=error.message, hint=error.hint, findings=findings)
    except Exception:
        logger.exception("the connection test of %s", address.name)
        mistake = "BenchHub made a mistake in testing this host."
        return HostSeen(asked_at=given.asked_at, failure=mistake, hint=MISTAKE_HINT)
    return HostSeen(
        asked_at=given.asked_at,
        offered=[key.line for key in seen.offered],
        digest=seen.digest,
        profile=None if seen.profile is None else dict(seen.profile),
        unread=None if seen.unread is None else dict(seen.unread),
        access=None if seen.access is None else dataclasses.asdict(seen.access),
        clock_ahead_s=seen.clock_ahead_s,
        remark=seen.remark,
        notes=list(seen.notes),
        findings=[Finding(**dataclasses.asdict(one)) for one in seen.findings],
    )
