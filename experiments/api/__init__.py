"""The REST API."""

from __future__ import annotations

from ninja import NinjaAPI

api = NinjaAPI(title="BenchHub")
