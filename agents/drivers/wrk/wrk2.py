"""wrk2: open-loop load at an offered rate."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Literal

from pydantic import Field

from agents.drivers.base.http_options import Binary
from agents.drivers.wrk import text_report as wrk_text
from agents.drivers.wrk.options import WrkOptions
from agents.results.report import LatencyBasis, LoadModel, LoadReport


def read(output: str) -> LoadReport:
    """The report in wrk2's text. Raises ParseError."""
    return wrk_text.read_text(output, "wrk2")


class Wrk2(WrkOptions):
    """wrk2. Its latency is response time, counted from when a request was due.

    The first 10 s of a phase are calibration and leave no trace in its latency figures, but in its throughput they do.
    """

    load_model: ClassVar[LoadModel] = "open"
    latency_basis: ClassVar[LatencyBasis] = "response_time"
    formats: ClassVar[tuple[str, ...]] = ("wrk2-text",)

    kind: Literal["wrk2"] = "wrk2"
    offered_rate_rps: int = Field(ge=1, le=1_000_000_000)
    binary: Binary = "wrk2"
    uncorrected_latency: bool = False
    """Also print the latency counted from when a request was really sent (-U)."""

    def _own_arguments(self) -> list[str]:
        return [f"-R{self.offered_rate_rps}", *(["-U"] if self.uncorrected_latency else [])]

    def parse_version(self, output: bytes) -> str:
        return self._version(output, has_rate=True)

    def parse(self, output: str) -> LoadReport:
        return replace(self._complete(read(output)), offered_rate_rps=float(self.offered_rate_rps))
