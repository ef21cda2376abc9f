"""The equal API call of a form, to be copied."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from experiments.models import Run
from experiments.models.documents import Document
from experiments.running.queue.priorities import name_of


def api_url(request: HttpRequest, path: str) -> str:
    """The absolute address of an API path."""
    return request.build_absolute_uri(reverse("api-1:api-root") + path)


def curl(url: str, body: dict[str, Any]) -> str:
    """The equal API call as one shell command; the token comes from the environment."""
    data = json.dumps(body, ensure_ascii=False, indent=2)
    return (
        f"curl -sS {shlex.quote(url)} \\\n"
        '  -H "Authorization: Bearer $BENCHHUB_TOKEN" -H "Content-Type: application/json" \\\n'
        f"  -d {shlex.quote(data)}"
    )


def urgency_parts(cleaned: Mapping[str, Any], *, retries: int) -> dict[str, Any]:
    """Priority and retries as the API names them, where they are not what it takes by itself."""
    parts: dict[str, Any] = {}
    if cleaned["priority"] != Run.Priority.NORMAL:
        parts["priority"] = name_of(cleaned["priority"])
    if cleaned["retries"] != retries:
        parts["retries"] = cleaned["retries"]
    return parts


def versioned(document: Document) -> str:
    """A version as the API names it."""
    return f"{document.name}@{document.version}"
