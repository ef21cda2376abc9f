"""Every request gets an id for the logs, and is counted for the metrics page."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase
from prometheus_client import CollectorRegistry, Counter, Histogram

from agents.log_context import bound

HEADER = "X-Request-ID"
_SANE = re.compile(r"[A-Za-z0-9._\-]{1,64}")

registry = CollectorRegistry()
_requests = Counter(
    "benchhub_http_requests", "Requests that this web process answered.", ["method", "status"], registry=registry
)
_seconds = Histogram(
    "benchhub_http_request_seconds",
    "Until the answer of this web process began.",
    buckets=(0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
    registry=registry,
)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})


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
