"""The queues of messages to workers: two for each site, declared as the broker wants them."""

from __future__ import annotations

from kombu import Queue  # type: ignore[attr-defined]  # kombu exports lazily

RUNS = "runs"
DEFAULT = "default"
KINDS = (RUNS, DEFAULT)
"""For workers that execute runs, and for those that do everything else; at a site only what needs its hosts."""
_AMQP = ("amqp", "amqps", "pyamqp")


def queue_name(kind: str, site: str) -> str:
    """`runs` at the central site, `runs.berlin` at the site berlin."""
    return f"{kind}.{site}" if site else kind


def queues_of(site: str) -> tuple[str, ...]:
    """The names of both queues of a site."""
    return tuple(queue_name(kind, site) for kind in KINDS)


def site_of(name: str) -> str:
    """The site of a queue."""
    return name.partition(".")[2]


def is_amqp(broker_url: str) -> bool:
    """Whether the broker is a RabbitMQ, and not a Redis."""
    return broker_url.partition(":")[0] in _AMQP


def declared(name: str, broker_url: str) -> Queue:
    """The queue as it is declared: RabbitMQ keeps a quorum queue on several of its nodes."""
    arguments = {"x-queue-type": "quorum"} if is_amqp(broker_url) else None
    return Queue(name, queue_arguments=arguments)  # type: ignore[no-untyped-call]
