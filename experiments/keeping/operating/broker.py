"""A look at the broker, for people and probes only: nothing in BenchHub waits for it."""

from __future__ import annotations

from dataclasses import dataclass, field

import redis
from django.conf import settings
from redis.backoff import NoBackoff
from redis.retry import Retry

from experiments.keeping.operating.bounded_look import BoundedLook, NoAnswer

LIMIT_S = 1.5


@dataclass(frozen=True)
class Broker:
    """Whether the broker answers, and how many messages lie in each queue. `trouble`: why it does not."""

    answers: bool
    messages: dict[str, int] = field(default_factory=dict)
    trouble: str = ""


def _look() -> dict[str, int]:
    client = redis.Redis.from_url(
        settings.REDIS_URL, socket_timeout=LIMIT_S, socket_connect_timeout=LIMIT_S, retry=Retry(NoBackoff(), 0)
    )
    with client:
        return {queue.name: int(client.llen(queue.name)) for queue in settings.CELERY_TASK_QUEUES}


_bounded = BoundedLook(_look, limit_s=LIMIT_S + 0.5, kept_s=2.0)


def look_at_broker() -> Broker:
    """At most 2 s, also when the broker hangs."""
    try:
        return Broker(answers=True, messages=_bounded())
    except (redis.RedisError, OSError, NoAnswer) as error:
        return Broker(answers=False, trouble=str(error))
