"""One annotation of a dashboard."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.conf import settings

MOST_CHARS = 1000
"""Of a text: it is shown in a small box over a chart."""


@dataclass(frozen=True)
class Mark:
    """A moment, or a span when `end_ms` is not None; both in milliseconds since 1970. `url` is the page about it.

    `is_open`: a span that has not ended yet.
    """

    time_ms: int
    end_ms: int | None
    title: str
    text: str
    tags: tuple[str, ...]
    url: str
    is_open: bool = False

    def touches(self, from_ms: int, to_ms: int) -> bool:
        """Whether some of it lies in the window."""
        last_ms = to_ms if self.is_open else self.time_ms if self.end_ms is None else self.end_ms
        return self.time_ms <= to_ms and last_ms >= from_ms


def mark(
    time_ms: int,
    title: str,
    text: str,
    tags: Iterable[str],
    page: str,
    *,
    end_ms: int | None = None,
    is_open: bool = False,
) -> Mark:
    """`page` is the path below the installation's address."""
    ends = None if end_ms is None else max(end_ms, time_ms)
    words = tuple(dict.fromkeys(filter(None, tags)))
    return Mark(time_ms, ends, title, text[:MOST_CHARS], words, f"{settings.BENCHHUB_URL}{page}", is_open)
