"""How every answer of the API becomes JSON."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja.renderers import JSONRenderer
from ninja.responses import NinjaJSONEncoder
from pydantic_core import to_json

from experiments.api.plumbing.paging import tell_pages_of

_OTHERS = NinjaJSONEncoder()


def rendered(data: Any) -> bytes:
    """JSON in UTF-8; times in ISO 8601. Pydantic's own writer takes a tenth of the time of Python's."""
    return to_json(data, fallback=_OTHERS.default)


class Renderer(JSONRenderer):
    def render(self, request: HttpRequest, data: Any, *, response_status: int) -> bytes:
        if isinstance(data, dict) and "next_cursor" in data:
            tell_pages_of(request, data)
        return rendered(data)
