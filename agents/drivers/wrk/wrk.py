"""wrk: closed-loop load, as fast as the connections allow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from agents.drivers.base.command_line import CommandGrammar
from agents.drivers.base.driver import Habits
from agents.drivers.wrk import csv_summary
from agents.drivers.wrk import text_report as wrk_text
from agents.drivers.wrk.command_line import WrkGrammar
from agents.drivers.wrk.options import WrkOptions
from agents.formats.report_format import ReportFormat
from agents.results.report import LatencyBasis, LoadModel, LoadReport


def read_printed(output: str) -> LoadReport:
    """The report in wrk's text, with what only the CSV behind it says where a script wrote one. Raises ParseError."""
    return csv_summary.with_csv(wrk_text.read_text(output, "wrk"), output)


class Wrk(WrkOptions):
    """wrk. Its latency is service time: a stalled server slows the requests down instead of growing a queue."""

    load_model: ClassVar[LoadModel] = "closed"
    latency_basis: ClassVar[LatencyBasis] = "service_time"
    formats: ClassVar[tuple[ReportFormat, ...]] = (
        ReportFormat("wrk-text", lambda text: not csv_summary.looks_like_csv(text), read_printed),
        ReportFormat(csv_summary.FORMAT, csv_summary.looks_like_csv, csv_summary.read_csv),
    )
    grammar: ClassVar[CommandGrammar | None] = WrkGrammar(has_rate=False)
    rate_option: ClassVar[str] = ""
    divided: ClassVar[Mapping[str, str]] = {"connections": "connections"}
    habits: ClassVar[Habits] = Habits(back_to_back=True, omits_late_answers=True, thread_rate_sample_ms=100.0)

    kind: Literal["wrk"] = "wrk"

    @classmethod
    def kind_behind(cls, text: str, command: str) -> str:
        # wrk2 is often installed as wrk, and its shortest report differs in nothing but what wrk cannot have measured.
        rate = WrkGrammar(has_rate=True).read(command).offered_rate_rps if command.strip() else None
        return "wrk2" if rate or wrk_text.is_of_wrk2(text) else "wrk"

    def parse_version(self, output: bytes) -> str:
        return self._version(output, has_rate=False)

    def parse(self, output: str) -> LoadReport:
        return self._complete(self.read(output))
