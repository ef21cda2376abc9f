"""iperf3: the bandwidth from the driver host to the SUT, where an iperf3 server is the server under test."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from agents.base.command import Command
from agents.base.installed import program
from agents.base.rights import Rights
from agents.drivers.base.benchmark_tool import BenchmarkTool, server_at
from agents.drivers.base.driver import Reaches, Target
from agents.drivers.base.http_options import MARGIN_S, Binary, whole_seconds
from agents.readers.base.named_result import NamedResult
from agents.readers.base.result_reader import ResultReader
from agents.readers.iperf3 import IPERF3
from agents.results.report import LoadModel, LoadReport

_THERE, _BACK = "there", "back"


class Iperf3(BenchmarkTool):
    """iperf3. The bandwidth that arrives; the server under test is `iperf3 -s`, of the kind command.

    UDP sends at `rate_mbps`, which should be above what arrives to find the limit, and says what was lost.
    """

    concurrency_option: ClassVar[str] = "streams"
    divided: ClassVar[Mapping[str, str]] = {"streams": "streams"}
    results: ClassVar[ResultReader] = IPERF3
    stops_at_failures: ClassVar[bool] = True
    version_pattern: ClassVar[re.Pattern[str]] = re.compile(r"^iperf (3\.[0-9]\S{0,40})", re.ASCII | re.MULTILINE)
    install: ClassVar[str] = "install the package iperf3"

    rights: ClassVar[Rights] = Rights(
        does="sends data to the server under test, or receives it", gates={"binary": program("iperf3")}
    )

    kind: Literal["iperf3"] = "iperf3"
    streams: int = Field(1, ge=1, le=128)
    protocol: Literal["tcp", "udp"] = "tcp"
    direction: Literal["to the server", "from the server", "both"] = "to the server"
    rate_mbps: int | None = Field(None, ge=1, le=1_000_000)
    """Megabits per second that each stream sends at most; UDP sends 1 without it."""
    buffer_bytes: int | None = Field(None, ge=16, le=1_048_576)
    """Of each write."""
    omit_s: int = Field(0, ge=0, le=60)
    """Seconds at the beginning that do not count, beside the phase's duration."""
    zero_copy: bool = False
    binary: Binary = "iperf3"

    @model_validator(mode="after")
    def _makes_sense(self) -> Iperf3:
        if self.protocol == "udp" and self.zero_copy:
            raise ValueError("zero_copy is for TCP")
        return self

    def why_indivisible(self) -> str:
        return "a server of iperf3 serves one client at a time"

    @property
    def reaches(self) -> Reaches:
        return "tcp"

    @property
    def load_model(self) -> LoadModel:
        return "open" if self.protocol == "udp" else "closed"

    def headlines(self) -> Sequence[str]:
        if self.direction == "both":
            return (f"{_THERE}.bits_per_s", f"{_BACK}.bits_per_s")
        return ("bits_per_s",)

    def command(self, target: Target, duration_s: float) -> Command:
        """The command line. PlanError when the duration is not whole seconds or the target has no port."""
        seconds = whole_seconds(self.kind, duration_s)
        host, port = server_at(target)
        argv = [self.binary, "-J", "-c", host, "-p", port, "-t", str(seconds), "-P", str(self.streams)]
        argv += {"to the server": [], "from the server": ["-R"], "both": ["--bidir"]}[self.direction]
        argv += ["-u"] if self.protocol == "udp" else []
        argv += ["-b", f"{self.rate_mbps}M"] if self.rate_mbps is not None else []
        argv += ["-l", str(self.buffer_bytes)] if self.buffer_bytes is not None else []
        argv += ["-O", str(self.omit_s)] if self.omit_s else []
        argv += ["-Z"] if self.zero_copy else []
        return Command(tuple(argv), timeout_s=seconds + self.omit_s + MARGIN_S)

    def part_name(self, result: NamedResult) -> str:
        return _BACK if result.benchmark == "sum_bidir_reverse" else _THERE

    def completed(self, report: LoadReport) -> LoadReport:
        return replace(report, connections=self.streams)
