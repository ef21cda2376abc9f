"""Work in a thread while what it shall work on next is being made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Made = TypeVar("Made")


def one_ahead(work: Callable[[Item], Made], items: Iterable[Item]) -> Iterator[Made]:
    """`work` of each item, in their order. It runs in a thread of its own, so it must not ask the database.

    The items are made in the thread that asks for them, at most two ahead of what was handed out. What the work raises
    is raised in its turn; what is raised while an item is made comes at once, after the work under way.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="one-ahead") as pool:
        waiting: Future[Made] | None = None
        for item in items:
            following = pool.submit(work, item)
            if waiting is not None:
                yield waiting.result()
            waiting = following
        if waiting is not None:
            yield waiting.result()
