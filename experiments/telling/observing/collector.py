"""One POST of a trace to the operator's OpenTelemetry Collector, as OTLP over HTTP in JSON."""

from __future__ import annotations

import http.client
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

from django.conf import settings

LIMIT_S = 10.0
LIMIT_BYTES = 64 * 1024
AGAIN = (408, 429, 502, 503, 504)
"""Answers after which the same trace may be taken later; any other is final. Source: OTLP, failures."""


class CollectorError(Exception):
    """It was not taken, for this reason; `final`: it will not be later, either."""

    def __init__(self, message: str, *, final: bool = False) -> None:
        super().__init__(message)
        self.final = final


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_arguments: Any) -> None:
        return None  # the headers have the operator's secret


def send_trace(body: Mapping[str, Any]) -> None:
    """CollectorError when it was not taken."""
    url = f"{settings.OTEL_EXPORTER_OTLP_ENDPOINT.rstrip('/')}/v1/traces"
    headers = {"Content-Type": "application/json", "User-Agent": "BenchHub", **settings.OTEL_EXPORTER_OTLP_HEADERS}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers, method="POST")  # noqa: S310 - of the operator
    opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=_context()), _NoRedirects())
    try:
        with opener.open(request, timeout=LIMIT_S) as answer:
            said = answer.read(LIMIT_BYTES)
    except urllib.error.HTTPError as error:
        with error:
            why = error.read(500).decode(errors="replace")
        raise CollectorError(f"It answered {error.code}: {why}", final=error.code not in AGAIN) from error
    except (OSError, http.client.HTTPException) as error:
        raise CollectorError(f"It gave no answer: {error}") from error
    rejected = _rejected(said)
    if rejected:
        raise CollectorError(f"It took only a part: {rejected}", final=True)


def _context() -> ssl.SSLContext:
    authority = settings.OTEL_EXPORTER_OTLP_CERTIFICATE
    try:
        return ssl.create_default_context(cafile=str(authority) if authority else None)
    except OSError as error:  # SSLError is one
        raise CollectorError(f"OTEL_EXPORTER_OTLP_CERTIFICATE {authority} cannot be used: {error}") from error


def _rejected(said: bytes) -> str:
    """What a collector that answered well says of spans that it did not take; "" when it took all."""
    try:
        partial = json.loads(said or b"{}").get("partialSuccess") or {}
    except (ValueError, AttributeError):
        return ""  # an answer in another form: it was 2xx
    count = int(partial.get("rejectedSpans") or 0)
    return f"{count} spans rejected: {str(partial.get('errorMessage', ''))[:300]}" if count else ""
