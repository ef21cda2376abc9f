"""A site's worker: `manage.py site-worker --url https://... --token-file FILE --site NAME --keys DIR`.

It opens no database and knows no broker. Each run has a thread of its own, as with the other workers.
"""

from __future__ import annotations

import argparse
import asyncio
import fcntl
import logging
import os
import signal
import socket
import sys
import threading
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agents.base.errors import MISTAKE_HINT, AgentError, FenceError, MistakeError
from agents.base.log_context import bound
from agents.base.version import own_version
from agents.site.checking import check_host
from agents.site.delivery import first_batch, send_events
from agents.site.door import Door, Refused, RequestTooLarge, StoreLost
from agents.site.keys import Keys
from agents.site.looking import read_for_plan
from agents.site.spool import LeftOver, left_over
from agents.site.store import HttpStore, claimed
from agents.site.wire import LONGEST_POLL_S, PROTOCOL, Claim, ClaimAsked, End, Kept, RunGiven, SiteShown
from agents.working.execution import execute, restore
from agents.working.lease import HandedOver, handing_over
from agents.working.store import StoreAway

logger = logging.getLogger(__name__)

VERSION = own_version()
"""Of the code that runs: what is installed over it meanwhile counts from the next start on."""
AGAIN_S = 2.0
"""Between two claims when the centre is away."""


class SiteWorker:
    """Claims runs of the site one after the other and works on up to `slots` of them at a time."""

    def __init__(self, door: Door, keys: Keys, folder: Path, *, slots: int, libraries: Path | None) -> None:
        self._door, self._keys, self._folder = door, keys, folder
        self._slots, self._libraries = slots, libraries
        self._claiming = threading.Lock()
        self._live: set[HttpStore] = set()
        self._left = set(folder.glob("*.jsonl"))

    def work(self) -> None:
        """Until the process is told to stop: then runs are let go, and this returns."""
        threads = [threading.Thread(target=self._slot, name=f"slot-{number}") for number in range(self._slots)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _slot(self) -> None:
        while not handing_over.is_set():
            with self._claiming:  # one question at a time is open at the centre, whatever the number of slots
                given = self._claim()
            if given.run is not None:
                with bound(run=given.run.id, fence=given.run.fence):
                    if handing_over.is_set():  # the question was under way when this process was told to stop
                        self._let_go(given.run)
                    else:
                        self._do(given.run)
            else:
                self._look(given)

    def _let_go(self, given: RunGiven) -> None:
        """Leave a run that was not begun to another worker; without an answer its lease runs out."""
        try:
            query = {"fence": str(given.fence)}
            self._door.ask(Kept, "POST", f"/runs/{given.id}/end", End(how="let_go"), query=query)
        except (AgentError, StoreAway) as error:
            logger.warning("run %s could not be let go: %s", given.id, error)

    def _look(self, given: Claim) -> None:
        """What is asked for beside runs. The centre asks again for what was not told."""
        try:
            if given.host is not None:
                check_host(given.host, self._door, self._keys)
            elif given.dry_run is not None:
                read_for_plan(given.dry_run, self._door, self._keys, self._libraries)
        except (AgentError, StoreAway) as error:
            logger.warning("a look at hosts was not told: %s", error)

    def _claim(self) -> Claim:
        if handing_over.is_set():
            return Claim()
        pause_s = AGAIN_S
        name = f"{socket.gethostname()}:{os.getpid()}:{threading.get_native_id()}"
        try:
            self._deliver_left_over()
            holds = [held for store in tuple(self._live) if (held := store.held) is not None]
            asked = ClaimAsked(
                protocol=PROTOCOL, version=VERSION, worker=name, slots=self._slots, wait_s=LONGEST_POLL_S, holds=holds
            )
            return self._door.ask(Claim, "POST", "/claims", asked, timeout_s=LONGEST_POLL_S + 30)
        except StoreAway as error:
            logger.warning("no claim: %s", error)
        except MistakeError as error:  # as of a centre of another version; what is worked on goes on
            logger.warning("no claim: %s", error)
            pause_s = LONGEST_POLL_S
        except Exception:
            logger.exception("no claim, in a way that nobody foresaw")
        handing_over.wait(pause_s)
        return Claim()

    def _deliver_left_over(self) -> None:
        """Events that could not be told when their run was left: they count while nobody has taken it up since."""
        for path in sorted(self._left):
            try:
                if path.exists() and (left := left_over(path)) is not None:
                    self._deliver(left)
                path.unlink(missing_ok=True)
            except OSError as error:  # it must not keep the worker from claims
                logger.warning("%s: what a run left cannot be told or removed: %s", path, error)
            self._left.discard(path)

    def _deliver(self, left: LeftOver) -> None:
        waiting, first = deque(left.lines), left.first
        try:
            while batch := first_batch(waiting, len):
                send_events(self._door, left.run_id, left.fence, first, batch, left=True)
                first += len(batch)
                for _ in batch:
                    waiting.popleft()
        except (FenceError, MistakeError, RequestTooLarge) as error:  # the same once more ends in the same way
            logger.warning("run %s: %s events are not told any more: %s", left.run_id, len(waiting), error)

    def _do(self, given: RunGiven) -> None:
        try:
            asyncio.run(self._work(given))
        except (StoreAway, StoreLost) as error:
            logger.warning("run %s is left: %s; whoever claims it next goes on", given.id, error)
        except Exception:
            logger.exception("run %s: left, in a way that nobody foresaw", given.id)

    async def _work(self, given: RunGiven) -> None:
        store = HttpStore(given, self._door, self._keys, self._folder)
        self._live.add(store)
        try:
            if given.work == "restore":
                await self._restore(given, store)
                return
            try:
                await execute(claimed(given, self._libraries), store)
            except (StoreAway, StoreLost):
                raise
            except Exception:
                logger.exception("run %s: given up, in a way that nobody foresaw", given.id)
                await store.give_up("BenchHub made a mistake and could not carry on with this run.", MISTAKE_HINT)
        finally:
            self._live.discard(store)
            self._left |= {left} if (left := await store.close()) else set()

    async def _restore(self, given: RunGiven, store: HttpStore) -> None:
        try:
            await restore(claimed(given, self._libraries), store, tuple(given.roles), force=given.force)
        except HandedOver:
            logger.info("run %s: its way back is handed over", given.id)
        except FenceError as error:
            await store.taken_over(error)
        except (StoreAway, StoreLost):
            raise
        except Exception:
            logger.exception("the hosts of run %s could not be put back, in a way that nobody foresaw", given.id)
            await store.give_up("BenchHub made a mistake in putting this host back.", MISTAKE_HINT)
        else:
            await store.restored()


def main(arguments: Sequence[str]) -> None:
    """Run until SIGTERM or SIGINT. SystemExit, in words, for what cannot work."""
    given = _parser().parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    logging.getLogger("asyncssh").setLevel(logging.WARNING)  # it would tell each command, and what is in it
    try:
        keys = Keys(given.keys)
        folder = _own_folder(given.state)
        door = Door(given.url, lambda: given.token_file.read_text().strip(), agent=f"benchhub-site-worker/{VERSION}")
    except (ValueError, OSError) as error:
        raise SystemExit(f"site-worker: {error}") from error
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: handing_over.set())
    _greet(door, given.site)
    worker = SiteWorker(door, keys, folder, slots=given.slots, libraries=given.profilers)
    worker.work()


def _greet(door: Door, site: str) -> None:
    """Wait for the centre, and see that the token is for this site."""
    while not handing_over.is_set():
        try:
            shown = door.ask(SiteShown, "GET", "")
        except (Refused, AgentError) as error:
            raise SystemExit(f"site-worker: {error}") from error
        except StoreAway as error:
            logger.warning("waiting for the centre: %s", error)
            handing_over.wait(AGAIN_S)
            continue
        if (shown.protocol, shown.version) != (PROTOCOL, VERSION):
            theirs = f"BenchHub {shown.version}" if shown.version else "an older BenchHub"
            raise SystemExit(
                f"site-worker: the centre is {theirs}, and this worker is of {VERSION} or another build of it: "
                "install the centre's version here, and start this again."
            )
        if shown.site != site:
            raise SystemExit(f"site-worker: the token is for the site {shown.site}, and --site says {site}.")
        logger.info("works for the team %s at the site %s", shown.team, shown.site)
        return


def _own_folder(folder: Path) -> Path:
    """The state directory, of this process alone. ValueError when another one has it."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ValueError(f"--state: another site-worker uses {folder}; give each its own") from None
    return folder


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="site-worker", description="Works on the runs of a site, over HTTPS alone.")
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state") / "benchhub-site-worker"
    parser.add_argument("--url", required=True, help="the address of BenchHub, https://...")
    parser.add_argument("--token-file", required=True, type=Path, help="holds the token with the scope work")
    parser.add_argument("--site", required=True, help="the name of the site that the token is for")
    parser.add_argument("--keys", required=True, type=Path, help="directory of private keys: HOST or default")
    parser.add_argument("--state", type=Path, default=state, help=f"where events wait for the link ({state})")
    parser.add_argument("--slots", type=_slots, default=4, help="runs at a time (4)")
    parser.add_argument("--profilers", type=Path, help="directory of bin/get-profilers, for runs with profilers")
    return parser


def _slots(text: str) -> Any:
    number = int(text)
    if not 1 <= number <= 1000:
        raise argparse.ArgumentTypeError("between 1 and 1000")
    return number
