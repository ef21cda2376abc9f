"""The threads of a worker claim one after the other, and none of them looks for what another one has not found."""

from __future__ import annotations

import threading

import pytest

from experiments.running.executing import execution
from experiments.running.queue.dispatch import Claim

LIMIT_S = 60.0


class TellingLock:
    """Says that somebody asks for it, who has looked at the clock by then."""

    def __init__(self, asking: threading.Semaphore) -> None:
        self._asking = asking
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self._asking.release()
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def test_who_waits_for_a_look_that_finds_nothing_does_not_look_again(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []
    first_looks, may_go_on = threading.Event(), threading.Event()

    def look(owner: str, site: str) -> Claim | None:
        looks.append(owner)
        first_looks.set()
        assert may_go_on.wait(LIMIT_S)
        return None

    monkeypatch.setattr(execution, "claim", look)
    turns, asking = execution.Turns(), threading.Semaphore(0)
    turns.one = TellingLock(asking)  # type: ignore[assignment]
    claimed: list[Claim | None] = []
    threads = [threading.Thread(target=lambda: claimed.append(turns.claim())) for _ in range(8)]
    threads[0].start()
    assert first_looks.wait(LIMIT_S)
    for thread in threads[1:]:
        thread.start()
    for _ in threads:
        assert asking.acquire(timeout=LIMIT_S)
    may_go_on.set()
    for thread in threads:
        thread.join(LIMIT_S)

    assert claimed == [None] * len(threads)
    assert len(looks) == 2  # the first one began before the others came
