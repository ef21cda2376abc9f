"""Hosts out of service: what could not be proven undone, and the way back into service."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from django.db.models import Q

from experiments.models import Host, Run
from experiments.registry.database_clock import database_now
from experiments.registry.errors import Conflict
from experiments.registry.events import HostQuarantined, tell
from experiments.registry.teams.audit import record

logger = logging.getLogger(__name__)

MAX_DIFFERENCES = 500
NOT_APPROVED = "The address changed, so the host key must be approved."


def quarantine(run: Run, host_id: int | None, differences: Sequence[str], *, try_again: bool) -> None:
    """Take a host out of service that this run could not prove to be as before, and mark the run dirty.

    `try_again`: it was only out of reach, or nobody has tried yet, so a worker puts it back by itself later. The caller
    saves the run. Does nothing without differences.
    """
    if not differences or host_id is None:
        return
    run.restore = Run.Restore.DIRTY
    shown = [text[:1000] for text in differences[:MAX_DIFFERENCES]]
    reason = f"Run #{run.number} could not be proven undone: {'; '.join(shown[:3])}"[:2000]
    host = Host.objects.only("name", "state").get(pk=host_id)
    Host.objects.filter(pk=host_id).update(
        state=Host.State.DIRTY,
        state_reason=reason,
        differences=shown,
        dirty_run=run,
        last_restore=restore_state("again", "BenchHub tries again by itself.") if try_again else {},
        stays_drained=Q(state=Host.State.DRAINED) | Q(state=Host.State.DIRTY, stays_drained=True),
    )
    told = {"state": Host.State.DIRTY, "reason": reason}
    record(run.team, "host.state", f"host {host.name}", before={"state": host.state}, after=told)
    tell(HostQuarantined(run, host_id, reason))
    logger.warning("host %s is dirty: %s", host_id, "; ".join(shown[:5]))


def back_in_service(host: Host) -> None:
    """Ready, or still new when its key was never approved at the address that it has now; a host that was drained
    before it became dirty is drained again. The caller saves the host."""
    if host.state == Host.State.DIRTY and host.stays_drained:
        host.state, host.state_reason = Host.State.DRAINED, "It was drained before a run left it dirty."
    elif host.host_key:
        host.state, host.state_reason = Host.State.READY, ""
    else:
        host.state, host.state_reason = Host.State.NEW, NOT_APPROVED
    host.differences, host.dirty_run, host.stays_drained = [], None, False


def refuse_while_restoring(host: Host) -> None:
    """Conflict while a worker puts the dirty host back: what a person says then would be overwritten by its end."""
    if host.leased_by_id is not None:
        raise Conflict(f"BenchHub is putting {host.name} back at this moment; wait for its end.")


def restore_state(
    state: str, message: str, hint: str = "", *, force: bool = False, tries: int = 0
) -> dict[str, str | bool | int]:
    """`Host.last_restore`: pending, again (a worker tries by itself later), proven or failed; `at` is now, in UTC."""
    at = database_now().isoformat(timespec="seconds")
    return {"state": state, "message": message, "hint": hint, "at": at, "force": force, "tries": tries}
