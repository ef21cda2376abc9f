"""Works on a claimed run: holds the lease, lets the runner work, and sees to its end whatever happens."""

from __future__ import annotations

import logging
from collections.abc import Callable

from agents.base.clock import set_run_clock
from agents.base.errors import MISTAKE_HINT, FenceError, HostInUse
from agents.events import Logged, Restored, Role
from agents.record import Record
from agents.runner import Runner
from agents.running.control import CANCELLED_PATIENCE_S, Control, KeepReadings
from agents.working.lease import HandedOver, Heart
from agents.working.store import ClaimedRun, RunStore

logger = logging.getLogger(__name__)

MAX_ATTEMPTS = 50
"""Workers that may begin with one run: one that kills each of them must come to an end, too."""

TAKEN_OVER = (
    "Another worker took this run over: the one before it has stopped or was silent. "
    "What ran on the hosts went on; its readings meanwhile are missing."
)


async def execute(run: ClaimedRun, store: RunStore) -> None:
    """Work on the run to its end, or until it is handed over or another worker has it. StoreAway: it is adopted."""
    logger.info("%s: begins with fence %s, attempt %s", run, run.fence, run.attempts)
    if run.attempts > MAX_ATTEMPTS:
        await store.give_up(f"{MAX_ATTEMPTS} workers began with this run and none came to its end.", MISTAKE_HINT)
        return
    try:
        await _work(run, store)
    except FenceError as error:
        await store.taken_over(error)
    except HostInUse as error:
        logger.warning("%s: put back into the queue: %s", run, error)
        await store.put_back()
    except HandedOver:
        logger.info("%s: handed over", run)


async def restore(run: ClaimedRun, store: RunStore, roles: tuple[Role, ...], *, force: bool) -> Restored:
    """The way back of a finished run once more on these hosts. HandedOver and FenceError are the caller's to tell."""
    set_run_clock(await store.clock())
    record = await store.record()
    runner = _runner(run, store, record, cancelled=lambda: False, patience_s=CANCELLED_PATIENCE_S)
    await Heart(store, run.heartbeat_s).hold(runner.restore_again(roles=roles, force=force))
    if record.restored is None:
        raise AssertionError("the way back always ends in a Restored event")
    return record.restored


async def _work(run: ClaimedRun, store: RunStore) -> None:
    set_run_clock(await store.clock())
    record = await store.record()
    if run.attempts > 1:
        await store.store(Logged("runner", (TAKEN_OVER,), "warning"))
    heart = Heart(store, run.heartbeat_s)
    runner = _runner(
        run,
        store,
        record,
        cancelled=lambda: heart.cancelled,
        patience_s=run.patience_s,
        keep_readings=await store.readings(),
    )
    await heart.hold(runner.run())
    await store.conclude(record)


def _runner(
    run: ClaimedRun,
    store: RunStore,
    record: Record,
    *,
    cancelled: Callable[[], bool],
    patience_s: float,
    keep_readings: KeepReadings | None = None,
) -> Runner:
    """What works on the run's hosts under its fence; all that happens there goes through the store."""
    control = Control(
        installation=run.installation,
        tell_leftovers=store.note_leftovers,
        admit=store.admit,
        connect=store.connect,
        emit=store.store,
        cancelled=cancelled,
        fence=run.fence,
        patience_s=patience_s,
        deadman_s=run.deadman_s,
        libraries=run.libraries,
        keep_profile=store.keep_profile,
        keep_readings=keep_readings,
        max_file_bytes=run.max_file_bytes,
        keep_file=store.keep_file,
    )
    return Runner(run.key, run.spec, record, control)
