"""The answer when something fails that no view foresaw: a database that is away is told apart from a mistake."""

from __future__ import annotations

import sys

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.template import loader
from django.views.defaults import server_error as mistake

RETRY_AFTER_S = 5


def server_error(request: HttpRequest) -> HttpResponse:
    """The 500 page, or the 503 page when the database is away, too slow, or keeps a row locked for too long."""
    if not isinstance(sys.exception(), OperationalError | InterfaceError):
        return mistake(request)
    again = request.get_full_path() if request.method == "GET" else "/"
    response = HttpResponse(loader.render_to_string("503.html", {"again": again}), status=503)
    response.headers["Retry-After"] = str(RETRY_AFTER_S)
    return response
