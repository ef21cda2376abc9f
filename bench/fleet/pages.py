"""How long pages of the fleet's team take, from a web process of its own."""

from __future__ import annotations

import time
import urllib.request
from collections.abc import Mapping

from bench.fleet.seeding import SLUG, Fleet
from bench.website import session_cookie, signed_in

PAGES: Mapping[str, str] = {"Overview": "", "Runs": "runs/", "Queue": "queue/", "Hosts": "hosts/"}


class Pages:
    """Somebody who is signed in and reads."""

    def __init__(self, url: str, fleet: Fleet) -> None:
        self._url = url
        self._cookie = session_cookie(signed_in(fleet.user))

    def times_ms(self, requests: int) -> dict[str, list[float]]:
        """Each page so many times, in turns."""
        found: dict[str, list[float]] = {name: [] for name in PAGES}
        for turn in range(requests + 2):
            for name, path in PAGES.items():
                took_ms = self._ask(path)
                if turn > 1:  # the first ones warm up
                    found[name].append(took_ms)
        return found

    def _ask(self, path: str) -> float:
        url = f"{self._url}/t/{SLUG}/{path}"
        request = urllib.request.Request(url, headers={"Cookie": self._cookie})  # noqa: S310 - our own
        began_s = time.perf_counter()
        with urllib.request.urlopen(request, timeout=120) as answer:  # noqa: S310 - our own
            answer.read()
        return 1000 * (time.perf_counter() - began_s)
