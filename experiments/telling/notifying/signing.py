"""Signatures of webhooks: `X-BenchHub-Signature: t=<unix seconds>,v1=<hex>`."""

from __future__ import annotations

import hashlib
import hmac


def signature(secret: str, body: bytes, *, at_unix_s: int) -> str:
    """The header's value: HMAC-SHA256 over "<t>.<body>" with the webhook's secret."""
    signed = hmac.new(secret.encode(), f"{at_unix_s}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={at_unix_s},v1={signed}"
