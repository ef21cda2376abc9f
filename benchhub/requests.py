"""Every request gets an id for the logs, and is counted for the metrics page."""

from __future__ import annotations

import os
import re
import secrets
import time
from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase
from django.utils.decorators import sync_only_middleware
from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.multiprocess import MultiProcessCollector

from agents.base.log_context import bound
from benchhub.probes import SHARED_COUNTS

HEADER = "X-Request-ID"
_SANE = re.compile(r"[A-Za-z0-9._\-]{1,64}")

_registry = CollectorRegistry()
_requests = Counter(
    "benchhub_http_requests", "Requests that the web server answered.", ["method", "status"], registry=_registry
)
_seconds = Histogram(
    "benchhub_http_request_seconds",
    "Until an answer of the web server began.",
    buckets=(0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
    registry=_registry,
)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})


def counts() -> CollectorRegistry:
    """What was counted since the start of the web server, by all of its processes."""
    if SHARED_COUNTS not in os.environ:
        return _registry
    found = CollectorRegistry()
    MultiProcessCollector(found)  # type: ignore[no-untyped-call]
    return found


@sync_only_middleware
def one_thread(get_response: Callable[[HttpRequest], HttpResponseBase]) -> Callable[[HttpRequest], HttpResponseBase]:
    """Stands last, so that Django keeps all middleware in the request's thread.

    Else each part of it that could be asynchronous costs two changes between the event loop and that thread, which
    together take longer than finding out who asks (docs/performance.md).
    """
    return get_response


class RequestMiddleware:
    """The id is the one that a proxy sent as X-Request-ID, else a new one; the answer carries it as well."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        given = request.headers.get(HEADER, "")
        request_id = given if _SANE.fullmatch(given) else secrets.token_hex(8)
        request.benchhub_id = request_id  # type: ignore[attr-defined]
        began_s = time.monotonic()
        with bound(request_id=request_id):
            response = self.get_response(request)
        _seconds.observe(time.monotonic() - began_s)
        # What clients make up must not make up new series.
        method = request.method if request.method in _METHODS else "other"
        _requests.labels(method, f"{response.status_code // 100}xx").inc()
        response.headers[HEADER] = request_id
        return response
