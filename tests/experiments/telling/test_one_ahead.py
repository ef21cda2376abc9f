"""Work in a thread while what it shall work on next is being made: experiments/telling/frames/ahead.py."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from threading import Event

import pytest

from experiments.telling.frames.ahead import one_ahead

PATIENCE_S = 30


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_what_was_made_comes_in_the_order_of_the_items(count: int) -> None:
    assert list(one_ahead(lambda item: item * item, range(count))) == [item * item for item in range(count)]


def test_the_next_item_is_made_while_the_one_before_is_worked_on() -> None:
    made_next = Event()

    def items() -> Iterator[int]:
        yield 0
        made_next.set()
        yield 1

    def work(item: int) -> bool:
        return item == 1 or made_next.wait(PATIENCE_S)  # false when nothing else happens meanwhile

    assert list(one_ahead(work, items())) == [True, True]


def test_an_item_whose_work_fails_says_so_in_its_turn() -> None:
    found = one_ahead(lambda item: 1 // item, [1, 0, 1])
    assert next(found) == 1
    with pytest.raises(ZeroDivisionError):
        next(found)


def test_an_item_that_cannot_be_made_says_so_after_the_work_under_way() -> None:
    worked: list[int] = []

    def items() -> Iterator[int]:
        yield 1
        raise ConnectionError("the database is away")

    with pytest.raises(ConnectionError, match="the database is away"):
        list(one_ahead(worked.append, items()))
    assert worked == [1]


def test_who_stops_reading_ends_the_thread_and_what_makes_the_items() -> None:
    ended = Event()

    def items() -> Iterator[int]:
        try:
            yield from range(10)
        finally:
            ended.set()

    found = one_ahead(str, items())
    assert next(found) == "0"
    found.close()  # type: ignore[attr-defined]  # a generator
    del found
    gc.collect()
    assert ended.is_set()
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("one-ahead")]
