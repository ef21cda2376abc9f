"""The wait for an end, of which a proxy between sees short requests only.

`benchhub-ci` has it as well, in its one file for any Python since 3.8: standard library and `connection` only.
"""

from __future__ import annotations

import time
from typing import Any, Iterator, Sequence  # noqa: UP035 - Python 3.8
from urllib.parse import urlencode

from .connection import ANSWER_TIMEOUT_S, WAIT_S, Api

_PAUSE_S = 1.0


def verdicts(
    api: Api,
    path: str,
    timeout_s: float,
    query: Sequence[tuple[str, str]] = (),
    *,
    looks_first: bool = False,
) -> Iterator[Any]:
    """The verdict of `path` again and again until it is `finished`, at the latest after `timeout_s` seconds, inf too.

    The last one is as it stands then. `looks_first` has the first one at once.
    """
    until = time.monotonic() + timeout_s
    left_s = 0.0 if looks_first else timeout_s
    while True:
        wait_s = int(max(0.0, min(WAIT_S, left_s)))
        asked = urlencode([*query, ("wait", str(wait_s))])
        verdict = api.get(f"{path}?{asked}", ANSWER_TIMEOUT_S + wait_s)
        yield verdict
        left_s = until - time.monotonic()
        if verdict["finished"] or left_s <= 0:
            return
        time.sleep(min(_PAUSE_S, left_s))
        left_s = until - time.monotonic()
