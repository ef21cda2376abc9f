"""What became of a setting that a step asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Result = Literal["applied", "unchanged", "unsupported", "refused"]


@dataclass(frozen=True)
class SettingOutcome:
    """What became of one setting: asked for `wanted`, found `before`, and afterwards the host had `effective`."""

    setting: str
    wanted: str | None
    before: str | None
    effective: str | None
    result: Result
    detail: str = ""
