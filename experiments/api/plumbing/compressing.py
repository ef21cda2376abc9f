"""Answers of some length go out compressed, where the client takes that."""

from __future__ import annotations

import re

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils.cache import patch_vary_headers
from django.utils.text import compress_string

MIN_BYTES = 1400
"""Below, it fits one packet of a network anyway."""
_TEXTS = re.compile(r"(?:application/(?:json|problem\+json|yaml)|text/(?:csv|markdown))\b")
_GZIP = re.compile(r"\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))")
_MOST_PADDING = 100
"""Random bytes, as Django's own middleware adds: the length must not tell what a secret in the answer is (BREACH)."""


def compress(request: HttpRequest, response: HttpResponseBase) -> None:
    """Compress a long text. What has an ETag stays: If-Match compares strongly, and other bytes need another tag."""
    if not isinstance(response, HttpResponse) or response.has_header("ETag"):
        return
    if len(response.content) < MIN_BYTES or not _TEXTS.match(response.get("Content-Type", "")):
        return
    patch_vary_headers(response, ("Accept-Encoding",))
    if response.has_header("Content-Encoding") or not _GZIP.search(request.headers.get("Accept-Encoding", "")):
        return
    packed = compress_string(response.content, max_random_bytes=_MOST_PADDING)
    if len(packed) < len(response.content):
        response.content = packed
        response["Content-Encoding"] = "gzip"
        response["Content-Length"] = str(len(packed))
