"""A look at the broker, for people and probes only: nothing in BenchHub waits for it."""

from __future__ import annotations

import functools
from collections.abc import Collection
from dataclasses import dataclass, field

import redis
from amqp.exceptions import AMQPError, NotFound  # type: ignore[import-untyped]
from django.conf import settings
from kombu import Connection  # type: ignore[attr-defined]  # kombu exports lazily
from kombu.exceptions import OperationalError
from redis.backoff import NoBackoff
from redis.retry import Retry

from experiments.keeping.operating.bounded_look import BoundedLook, NoAnswer
from experiments.registry.workers.queues import is_amqp

LIMIT_S = 1.5
_ERRORS = (redis.RedisError, AMQPError, OperationalError, OSError, NoAnswer)


@dataclass(frozen=True)
class Broker:
    """Whether the broker answers, and how many messages lie in each queue. `trouble`: why it does not."""

    answers: bool
    messages: dict[str, int] = field(default_factory=dict)
    trouble: str = ""


def broker_name() -> str:
    """What the broker is."""
    return "RabbitMQ" if is_amqp(settings.CELERY_BROKER_URL) else "Redis"


def look_at_broker(queues: Collection[str]) -> Broker:
    """How many messages lie in these queues. At most 2 s, also when the broker hangs."""
    try:
        return Broker(answers=True, messages=_bounded(tuple(queues))())
    except _ERRORS as error:
        return Broker(answers=False, trouble=str(error))


@functools.cache
def _bounded(queues: tuple[str, ...]) -> BoundedLook[dict[str, int]]:
    return BoundedLook(lambda: count_messages(queues), limit_s=LIMIT_S + 0.5, kept_s=2.0)


def count_messages(queues: Collection[str]) -> dict[str, int]:
    """The messages that nobody has taken yet, by queue; one that was never declared has none."""
    url = settings.CELERY_BROKER_URL
    return _count_in_rabbitmq(url, queues) if is_amqp(url) else _count_in_redis(queues)


def _count_in_redis(queues: Collection[str]) -> dict[str, int]:
    url = settings.BENCHHUB_BROKER_REDIS_URL
    client = redis.Redis.from_url(
        url, socket_timeout=LIMIT_S, socket_connect_timeout=LIMIT_S, retry=Retry(NoBackoff(), 0)
    )
    with client:
        return {name: int(client.llen(name)) for name in queues}


def _count_in_rabbitmq(url: str, queues: Collection[str]) -> dict[str, int]:
    """By passive declarations, which change nothing; the broker closes the channel of one that it does not know."""
    options = {"read_timeout": LIMIT_S, "write_timeout": LIMIT_S}
    found = dict.fromkeys(queues, 0)
    broker = Connection(url, connect_timeout=LIMIT_S, transport_options=options)  # type: ignore[no-untyped-call]
    with broker as connection:
        for name in queues:
            with connection.channel() as channel:
                try:
                    found[name] = int(channel.queue_declare(name, passive=True).message_count)
                except NotFound:
                    continue
    return found
