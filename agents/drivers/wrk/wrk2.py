"""wrk2: open-loop load at an offered rate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, Literal

from pydantic import Field

from agents.drivers.base.command_line import CommandGrammar
from agents.drivers.base.driver import Habits
from agents.drivers.base.http_options import Binary
from agents.drivers.wrk import text_report as wrk_text
from agents.drivers.wrk.command_line import WrkGrammar
from agents.drivers.wrk.options import WrkOptions
from agents.formats.report_format import ReportFormat, only
from agents.results.report import LatencyBasis, LoadModel, LoadReport


def read_printed(output: str) -> LoadReport:
    """The report in wrk2's text. Raises ParseError."""
    return wrk_text.read_text(output, "wrk2")


class Wrk2(WrkOptions):
    """wrk2. Its latency is response time, counted from when a request was due.

    The first 10 s of a phase are calibration and leave no trace in its latency figures, but in its throughput they do.
    """

    load_model: ClassVar[LoadModel] = "open"
    latency_basis: ClassVar[LatencyBasis] = "response_time"
    formats: ClassVar[tuple[ReportFormat, ...]] = only("wrk2-text", read_printed)
    grammar: ClassVar[CommandGrammar | None] = WrkGrammar(has_rate=True)
    rate_option: ClassVar[str] = "offered_rate_rps"
    divided: ClassVar[Mapping[str, str]] = {"connections": "connections", "offered_rate_rps": "requests/s"}
    habits: ClassVar[Habits] = Habits(
        queues_due=True,
        timeouts_note="wrk2 counts a timeout for each connection that is waiting at a check every 2 s, "
        "not for each request.",
    )

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
        return replace(self._complete(self.read(output)), offered_rate_rps=float(self.offered_rate_rps))
