"""The address that a load balancer or container asks whether BenchHub can serve."""

from __future__ import annotations

from collections.abc import Callable

from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, HttpResponseBase

PATH = "/healthz"


class HealthMiddleware:
    """Answers before host checks and the redirect to HTTPS: the asker sits next door and uses an address."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.path_info != PATH:
            return self.get_response(request)
        try:
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1")
        except DatabaseError:
            return HttpResponse("database unreachable\n", status=503, content_type="text/plain")
        return HttpResponse("ok\n", content_type="text/plain")
