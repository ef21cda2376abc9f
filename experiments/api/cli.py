"""`benchhub-ci` as this installation serves it."""

from __future__ import annotations

from pathlib import Path

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

_SCRIPT = Path(__file__).with_name("benchhub_ci.py")


@require_safe
def benchhub_ci(_request: HttpRequest) -> HttpResponse:
    """The command line tool for CI: one file, Python's standard library only."""
    response = HttpResponse(_SCRIPT.read_bytes(), content_type="text/x-python; charset=utf-8")
    response["Content-Disposition"] = 'attachment; filename="benchhub-ci"'
    response["X-Content-Type-Options"] = "nosniff"
    return response
