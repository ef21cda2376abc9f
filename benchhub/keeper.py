"""The process that owns the embedded PostgreSQL and Redis, and stops them after their last user.

Run as `python -m benchhub.keeper DATA_DIR READY_FD` by `benchhub.embedded`, never by hand.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType

from benchhub.embedded import EmbeddedError, Places, is_pinned
from benchhub.embedded_servers import PostgresServer, RedisServer
from benchhub.service_account import AccountError

LOOK_INTERVAL_S = 0.25
RESTART_PAUSE_S = 1.0


class Keeper:
    def __init__(self, places: Places) -> None:
        self.places = places
        self.stopping = False
        self.postgres = PostgresServer(places)
        self.redis = RedisServer(places)

    def ask_to_stop(self, _number: int, _frame: FrameType | None) -> None:
        self.stopping = True

    def start(self) -> None:
        self.postgres.start()
        self.redis.start()
        self.places.state.write_text(json.dumps({"pid": os.getpid()}), encoding="utf-8")

    def keep(self) -> None:
        """Returns when asked to stop, or holding the users' lock when nobody is left; restarts a server that died."""
        with self.places.users_lock.open("ab") as users:
            while not self.stopping:
                time.sleep(LOOK_INTERVAL_S)
                if not is_pinned(self.places, os.getpid()) and _try_lock(users.fileno()):
                    self.stop()  # new users wait for the lock until this is done
                    return
                self._revive()
        self.stop()

    def stop(self) -> None:
        self.places.state.unlink(missing_ok=True)
        self.redis.stop()
        self.postgres.stop()
        if self.places.sockets.parent != self.places.data_dir:
            with contextlib.suppress(OSError):  # something of somebody else's in it: leave it
                self.places.sockets.rmdir()

    def _revive(self) -> None:
        for server in (self.postgres, self.redis):
            if server.died() and not self.stopping:
                print(f"{server.name} ended; starting it again", flush=True)
                time.sleep(RESTART_PAUSE_S)
                try:
                    server.start()
                except EmbeddedError as error:
                    print(error, flush=True)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def main(data_dir: Path, ready_fd: int) -> int:
    places = Places(data_dir)
    keeper = Keeper(places)
    signal.signal(signal.SIGTERM, keeper.ask_to_stop)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with places.keeper_lock.open("a", encoding="utf-8") as own:
        if not _try_lock(own.fileno()):
            _answer(ready_fd, "another keeper of this data directory is running")
            return 1
        own.truncate(0)
        own.write(str(os.getpid()))
        own.flush()
        places.state.unlink(missing_ok=True)
        try:
            keeper.start()
        except (EmbeddedError, AccountError, OSError) as error:
            keeper.stop()
            _answer(ready_fd, str(error))
            return 1
        _answer(ready_fd, "")
        keeper.keep()
    return 0


def _answer(ready_fd: int, error: str) -> None:
    with os.fdopen(ready_fd, "w", encoding="utf-8") as pipe:
        try:
            json.dump({"error": error}, pipe)
            pipe.flush()
        except BrokenPipeError:  # whoever asked has gone; the users' lock decides what happens next
            pass


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2])))
