"""wrk: closed-loop load, as fast as the connections allow."""

from __future__ import annotations

from typing import ClassVar, Literal

from agents.drivers.wrk import csv_summary
from agents.drivers.wrk import text_report as wrk_text
from agents.drivers.wrk.options import WrkOptions
from agents.results.report import LatencyBasis, LoadModel, LoadReport


def read(output: str) -> LoadReport:
    """The report in wrk's text or in the CSV of its Lua script, or in both, one after the other. Raises ParseError."""
    return csv_summary.read_csv(output) if csv_summary.looks_like_csv(output) else read_printed(output)


def read_printed(output: str) -> LoadReport:
    """The report in wrk's text, with what only the CSV behind it says where a script wrote one. Raises ParseError."""
    return csv_summary.with_csv(wrk_text.read_text(output, "wrk"), output)


class Wrk(WrkOptions):
    """wrk. Its latency is service time: a stalled server slows the requests down instead of growing a queue."""

    load_model: ClassVar[LoadModel] = "closed"
    latency_basis: ClassVar[LatencyBasis] = "service_time"
    formats: ClassVar[tuple[str, ...]] = ("wrk-text", "wrk-lua-csv")

    kind: Literal["wrk"] = "wrk"

    def parse_version(self, output: bytes) -> str:
        return self._version(output, has_rate=False)

    def parse(self, output: str) -> LoadReport:
        return self._complete(read(output))
