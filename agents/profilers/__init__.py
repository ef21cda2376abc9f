"""The profilers. A new one is a file here, a line in `PROFILERS`, a case, and a row in the guide."""

from __future__ import annotations

from agents.profilers.async_profiler import AsyncProfiler
from agents.profilers.base.profiler import Profiler
from agents.profilers.jfr import Jfr
from agents.profilers.node import Node
from agents.profilers.perf import Perf
from agents.profilers.py_spy import PySpy
from agents.profilers.topdown import Topdown

PROFILERS: dict[str, Profiler] = {
    profiler.kind: profiler for profiler in (AsyncProfiler(), Jfr(), Node(), Perf(), PySpy(), Topdown())
}
