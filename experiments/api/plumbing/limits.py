"""How many requests a token may send: counted in Redis, said in each answer, and in nobody's way when Redis is."""

from __future__ import annotations

import functools
import logging
import time
from dataclasses import dataclass
from typing import cast

import redis
from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from redis.backoff import NoBackoff
from redis.retry import Retry

logger = logging.getLogger(__name__)

# One command: a transaction of three costs a request more than its answer from the database.
_COUNT = """
local used = redis.call('INCR', KEYS[1])
if used == 1 then redis.call('EXPIRE', KEYS[1], ARGV[1]) end
return {used, redis.call('TTL', KEYS[1])}
"""

WINDOW_S = 60
PATIENCE_S = 0.25
"""How long one request waits for Redis."""
PAUSE_S = 5.0
"""For how long nobody asks a Redis again that did not answer: a hung one delays one request, not all of them."""


@dataclass(frozen=True)
class Policy:
    """A limit per token and window; the setting is the number of requests, 0 = as many as one likes."""

    name: str
    setting: str

    @property
    def requests(self) -> int:
        return int(getattr(settings, self.setting))


ORDINARY = Policy("default", "BENCHHUB_API_PER_MINUTE")
INGEST = Policy("ingest", "BENCHHUB_INGEST_PER_MINUTE")
"""Results that were measured elsewhere come in thousands."""

SITE_WORK = Policy("work", "BENCHHUB_INGEST_PER_MINUTE")
"""Each live run tells of itself once or twice a second."""


@dataclass(frozen=True)
class Budget:
    """What a token has left of a policy; None = Redis did not say, so nothing is refused."""

    policy: Policy
    left: int | None
    resets_s: int

    @property
    def spent(self) -> bool:
        return self.left is not None and self.left < 0

    def tell(self, response: HttpResponseBase) -> None:
        """The headers of the IETF's draft "RateLimit header fields for HTTP"."""
        response["RateLimit-Policy"] = f'"{self.policy.name}";q={self.policy.requests};w={WINDOW_S}'
        if self.left is not None:
            response["RateLimit"] = f'"{self.policy.name}";r={max(0, self.left)};t={self.resets_s}'


class TooManyStreams(Exception):
    """The caller follows as many runs as it may."""

    def __init__(self, most: int) -> None:
        super().__init__(f"This token has {most} event streams open, as many as it may; close one first.")


class TooMany(Exception):
    """The token has sent its requests of this window."""

    def __init__(self, budget: Budget) -> None:
        super().__init__(
            f"This token may send {budget.policy.requests} requests in {WINDOW_S} s; go on in {budget.resets_s} s."
        )
        self.budget = budget


def spend(request: HttpRequest, token_id: str, policy: Policy) -> None:
    """Count this request. TooMany when it is one too many."""
    if policy.requests <= 0:
        return
    budget = _counter(settings.REDIS_URL).spend(token_id, policy)
    request.benchhub_budget = budget  # type: ignore[attr-defined]
    if budget.spent:
        raise TooMany(budget)


def tell_budget(request: HttpRequest, response: HttpResponseBase) -> None:
    """Say in the answer what is left, when the request was counted."""
    budget: Budget | None = getattr(request, "benchhub_budget", None)
    if budget is not None:
        budget.tell(response)


class Counter:
    """Counts in one Redis. The window begins with a token's first request."""

    def __init__(self, url: str) -> None:
        self._redis = redis.Redis.from_url(
            url, socket_timeout=PATIENCE_S, socket_connect_timeout=PATIENCE_S, retry=Retry(NoBackoff(), 0)
        )
        self._silent_until_s = 0.0

    def spend(self, token_id: str, policy: Policy) -> Budget:
        if time.monotonic() < self._silent_until_s:
            return Budget(policy, None, WINDOW_S)
        key = f"benchhub:requests:{policy.name}:{token_id}"
        try:
            used, left_s = cast(tuple[int, int], self._redis.eval(_COUNT, 1, key, str(WINDOW_S)))
        except (redis.RedisError, OSError) as error:
            self._silent_until_s = time.monotonic() + PAUSE_S
            logger.warning("requests are not counted for %g s: Redis does not answer (%s)", PAUSE_S, error)
            return Budget(policy, None, WINDOW_S)
        return Budget(policy, policy.requests - int(used), max(1, int(left_s)))


@functools.cache
def _counter(url: str) -> Counter:
    return Counter(url)
