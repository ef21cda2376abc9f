"""What machines ask: does the process live, can it serve pages, and its figures for Prometheus."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from django.db import Error, connection
from django.http import HttpRequest, HttpResponse, HttpResponseBase

from benchhub import prometheus
from benchhub.tables import has_unapplied_migrations
from experiments.keeping.operating.bounded_look import BoundedLook, NoAnswer
from experiments.keeping.operating.broker import look_at_broker
from experiments.keeping.operating.canaries import queue_states
from experiments.keeping.operating.clocks import hosts_with_wrong_clocks, wrong_clocks
from experiments.keeping.operating.operations import troubles
from experiments.keeping.operating.sites import site_states
from experiments.keeping.operating.watched import watched_queues
from experiments.registry.database_clock import database_now

DATABASE_S = 3.0
"""How long a probe waits for the database before it says that it does not answer."""


@dataclass(frozen=True)
class Readiness:
    """`failures`: why no page can be served. `degraded`: what else is wrong while pages work."""

    failures: list[str]
    degraded: list[str]


def _look() -> Readiness:
    try:
        now = database_now()
        if has_unapplied_migrations():
            return Readiness(["the database is older than the program: run the command migrate"], [])
        names = watched_queues()
        degraded = troubles(queue_states(names, now), look_at_broker(names), wrong_clocks(now), site_states(now))
        if hosts := len(hosts_with_wrong_clocks()):
            degraded.append(f"The clocks of {hosts} hosts differ from the database's; the operator page names them.")
        return Readiness([], degraded)
    finally:
        connection.close()


_bounded = BoundedLook(_look, limit_s=DATABASE_S, kept_s=2.0)


def readiness() -> Readiness:
    """Whether this process can serve pages: the database answers and has this program's tables. At most 3 s."""
    try:
        return _bounded()
    except (Error, NoAnswer) as error:
        return Readiness([f"the database does not answer: {str(error).strip()}"], [])


class ProbeMiddleware:
    """Answers before host checks and the redirect to HTTPS: the asker sits next door and uses an address."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        match request.path_info:
            case "/healthz":
                return HttpResponse("ok\n", content_type="text/plain")
            case "/readyz":
                return _ready(request)
            case "/metrics":
                return prometheus.metrics(request)
            case _:
                return self.get_response(request)


def _ready(request: HttpRequest) -> HttpResponse:
    found = readiness()
    status = 503 if found.failures else 200
    if request.get_preferred_type(["text/plain", "application/json"]) != "application/json":
        lines = ["not ready" if found.failures else "ready", *found.failures]
        lines += [f"degraded: {sentence}" for sentence in found.degraded]
        return HttpResponse("\n".join(lines) + "\n", status=status, content_type="text/plain")
    body = {"ready": not found.failures, "failures": found.failures, "degraded": found.degraded}
    return HttpResponse(json.dumps(body), status=status, content_type="application/json")
