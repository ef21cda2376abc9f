"""A team with what a run needs, as the tests of the API have it."""

from __future__ import annotations

from tests.experiments.conftest import admin, make_member, stock, team

__all__ = ["admin", "make_member", "stock", "team"]
