"""Each tool for HTTP with the fewest options that it takes."""

from __future__ import annotations

from typing import Any

from agents.drivers import DRIVERS
from agents.drivers.base.driver import Driver
from agents.drivers.base.http_tool import HttpTool
from agents.drivers.hyperfoil.driver import Hyperfoil

ENOUGH = {"connections": 2, "users": 2, "threads": 1, "offered_rate_rps": 100}
LEAST: dict[str, dict[str, Any]] = {
    kind: {name: ENOUGH[name] for name, field in tool.model_fields.items() if field.is_required()}
    for kind, tool in DRIVERS.items()
    if issubclass(tool, HttpTool | Hyperfoil)
}
KINDS = list(LEAST)
HEADERS = {"X-Own": "a b; $(id)"}


def make(kind: str, **options: Any) -> Driver:
    return DRIVERS[kind].model_validate({**LEAST[kind], **options})
