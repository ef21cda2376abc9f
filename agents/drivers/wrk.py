"""wrk: closed-loop load, as fast as the connections allow."""

from __future__ import annotations

from typing import ClassVar, Literal

from agents.drivers import wrk_csv, wrk_text
from agents.drivers.wrk_options import WrkOptions
from agents.report import LatencyBasis, LoadModel, LoadReport


def read(output: str) -> LoadReport:
    """The report in wrk's text or in the CSV of its Lua script, or in both, one after the other. Raises ParseError."""
    return wrk_csv.read_csv(output) if wrk_csv.looks_like_csv(output) else read_printed(output)


def read_printed(output: str) -> LoadReport:
    """The report in wrk's text, with what only the CSV behind it says where a script wrote one. Raises ParseError."""
    return wrk_csv.with_csv(wrk_text.read_text(output, "wrk"), output)


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
