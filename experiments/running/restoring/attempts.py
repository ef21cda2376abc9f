"""An attempt to put a dirty host back once more: how it begins, and what is stored of its end."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from agents.base.errors import MISTAKE_HINT, UNKNOWN_HOLDER_HINT, FenceError
from agents.events import Restored, Role
from experiments.models import Host, Run
from experiments.registry.hosts.machines import leased_sister, sisters_of
from experiments.registry.hosts.quarantine import back_in_service, restore_state
from experiments.registry.teams.audit import record
from experiments.registry.workers.outbox import RESTORE_HOST, send
from experiments.running.executing.older_database import note_older_database
from experiments.running.queue.dispatch import NEXT_FENCE
from experiments.running.queue.leases import lease_end

MOST_TRIES = 60
"""How often BenchHub tries by itself: about a day and a quarter."""
GIVEN_UP = "It could not be reached for more than a day. Restore it once it is back, or say that you checked it."


@dataclass(frozen=True)
class Attempt:
    """A finished run under a new fence, by which its dirty host is put back once more."""

    run: Run
    force: bool


def begin(host_id: int) -> Attempt | None:
    """Take the host for this attempt, unless somebody is at it, or at another host of its run: messages may come
    twice. A worker that died is told by its lease, and fenced out.
    """
    with transaction.atomic():
        host = Host.objects.select_for_update(of=("self",)).filter(pk=host_id, state=Host.State.DIRTY).first()
        if host is None or host.last_restore.get("state") not in ("pending", "again"):
            return None
        run = Run.objects.select_for_update(of=("self",)).filter(pk=host.dirty_run_id).first()
        if run is None or run.state != Run.State.FINISHED or run.spec is None:
            return None
        if host.leased_by_id not in (None, run.pk) or leased_sister(sisters_of([host]).of(host.pk), besides=run.pk):
            return None
        last = host.last_restore
        if int(last["tries"]) >= MOST_TRIES:  # workers that never come back from it
            host.last_restore = restore_state("failed", "No worker came to the end of putting it back.", MISTAKE_HINT)
            host.leased_by = None
            host.save(update_fields=["last_restore", "leased_by"])
            return None
        free = Run.objects.filter(Q(lease_until=None) | Q(lease_until__lte=Now()), pk=run.pk)
        if not free.update(fence=NEXT_FENCE, lease_until=lease_end()):
            return None
        run.refresh_from_db(fields=["fence"])
        host.last_restore = restore_state(
            "pending", "BenchHub is putting it back.", force=bool(last["force"]), tries=int(last["tries"]) + 1
        )
        host.leased_by = run
        host.save(update_fields=["last_restore", "leased_by"])
        return Attempt(run, bool(last["force"]))


def finish(host_id: int, fence: int, restored: Restored, roles: tuple[Role, ...]) -> None:
    """Store how the way back ended, of this attempt alone: nothing is stored for a newer holder."""
    differences = [text for role in roles for text in restored.differences.get(role, ())]
    away = any(role in restored.away for role in roles)
    with transaction.atomic():
        held = _held(host_id, fence)
        if held is None:
            return
        host, run = held
        last = host.last_restore
        if not differences:
            back_in_service(host)
            host.last_restore = restore_state("proven", f"Proven to be as it was before run #{run.number}.")
            told = {"state": host.state, "reason": host.state_reason}
            record(host.team, "host.state", f"host {host.name}", before={"state": Host.State.DIRTY}, after=told)
        elif away and int(last["tries"]) < MOST_TRIES:
            host.last_restore = restore_state(
                "again",
                f"It could not be reached: {differences[0]}",
                "BenchHub tries again by itself.",
                force=bool(last["force"]),
                tries=int(last["tries"]),
            )
        else:
            hint = (
                GIVEN_UP
                if away
                else "Put right by hand what the list says, then restore once more, or say that you checked it. "
                "What somebody else changed is only overwritten when you ask for that."
            )
            host.differences = differences
            host.last_restore = restore_state("failed", "It was tried again, and is still not as it was.", hint)
        _let_go(host, run)
        host.save()
        if not differences and not Host.objects.filter(dirty_run=run).exists():
            Run.objects.filter(pk=run.pk).update(restore=Run.Restore.VERIFIED)


def refuse(host_id: int, fence: int, refused: FenceError) -> None:
    """The host knows a greater fence: try again above it, or say that somebody unknown works there."""
    if not _once_more(host_id, fence, refused):
        fail(host_id, fence, refused.message, UNKNOWN_HOLDER_HINT)


def _once_more(host_id: int, fence: int, refused: FenceError) -> bool:
    """Try again above what the host has seen: the database is older, as after the restore of a backup."""
    with transaction.atomic():
        held = _held(host_id, fence)
        if held is None:
            return False
        host, run = held
        if not note_older_database(host.team, f"host {host.name}", refused):
            return False
        last = host.last_restore
        host.last_restore = restore_state(
            "pending", "Waiting for a worker.", force=bool(last["force"]), tries=int(last["tries"])
        )
        _let_go(host, run)
        host.save(update_fields=["last_restore", "leased_by"])
        transaction.on_commit(lambda: send(RESTORE_HOST, host_id, settings.BENCHHUB_SITE), robust=True)
    return True


def fail(host_id: int, fence: int, message: str, hint: str) -> None:
    """Store that this attempt came to nothing."""
    with transaction.atomic():
        held = _held(host_id, fence)
        if held is None:
            return
        host, run = held
        host.last_restore = restore_state("failed", message, hint)
        _let_go(host, run)
        host.save(update_fields=["last_restore", "leased_by"])


def _held(host_id: int, fence: int) -> tuple[Host, Run] | None:
    """Host and run, locked, while this attempt is the newest one and nobody cleared the host meanwhile."""
    host = Host.objects.select_for_update(of=("self",)).get(pk=host_id)
    run = Run.objects.select_for_update(of=("self",)).filter(pk=host.leased_by_id, fence=fence).first()
    return None if run is None or host.state != Host.State.DIRTY else (host, run)


def _let_go(host: Host, run: Run) -> None:
    """The end of an attempt: another host of the run may be next. The caller saves the host."""
    host.leased_by = None
    Run.objects.filter(pk=run.pk).update(lease_until=None)
