"""The client of BenchHub: `Hub` launches, waits and reads; `Hub.session` is for code that measures itself."""

from __future__ import annotations

from .connection import Trouble
from .hub import Experiment, Hub, Run, Verdict
from .sessions import Session

__all__ = ["Experiment", "Hub", "Run", "Session", "Trouble", "Verdict"]
__version__ = "1.0.0"
