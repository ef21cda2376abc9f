"""memtier_benchmark: reads and writes to Redis, Valkey or memcached."""

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
from agents.drivers.base.http_options import MARGIN_S, Binary, Connections, whole_seconds
from agents.readers.base.named_result import NamedResult
from agents.readers.base.result_reader import ResultForm, ResultReader
from agents.readers.memtier import MEMTIER
from agents.results.report import LoadReport

_ALL = "Totals"
_PERCENTILES = "50,90,95,99,99.9"


class Memtier(BenchmarkTool):
    """memtier_benchmark. Reads and writes in the ratio that is given, as many as its connections do."""

    concurrency_option: ClassVar[str] = "connections"
    divided: ClassVar[Mapping[str, str]] = {"connections": "connections"}
    results: ClassVar[ResultReader] = MEMTIER
    version_pattern: ClassVar[re.Pattern[str]] = re.compile(
        r"^memtier_benchmark v?([0-9]\S{0,40})", re.ASCII | re.MULTILINE
    )
    install: ClassVar[str] = "install the package memtier-benchmark, or build it from its releases"

    rights: ClassVar[Rights] = Rights(
        does="sends commands to the server under test", gates={"binary": program("memtier_benchmark")}
    )

    kind: Literal["memtier"] = "memtier"
    connections: Connections
    """Of all threads together; a multiple of threads."""
    threads: int = Field(1, ge=1, le=1024)
    protocol: Literal["redis", "memcache_text", "memcache_binary"] = "redis"
    writes: int = Field(1, ge=0, le=1_000_000)
    """So many writes for so many reads."""
    reads: int = Field(10, ge=0, le=1_000_000)
    pipeline: int = Field(1, ge=1, le=100_000)
    """Requests that a connection sends before it waits."""
    value_bytes: int = Field(32, ge=1, le=1_073_741_824)
    keys: int = Field(10_000_000, ge=1, le=1_000_000_000_000)
    key_pattern: Literal["R:R", "S:S", "G:G", "P:P"] = "R:R"
    """Keys of writes and of reads: by chance, in turn, around the middle, in turn for each connection."""
    binary: Binary = "memtier_benchmark"

    @model_validator(mode="after")
    def _makes_sense(self) -> Memtier:
        if self.connections % self.threads:
            raise ValueError(f"connections ({self.connections}) must be a multiple of threads ({self.threads})")
        if not self.writes + self.reads:
            raise ValueError("writes and reads cannot both be 0")
        return self

    @property
    def reaches(self) -> Reaches:
        return "tcp"

    @property
    def result_form(self) -> ResultForm:
        """Its table: a JSON file would have to be named and fetched, and says no more that is used."""
        return self.results.forms[1]

    def command(self, target: Target, duration_s: float) -> Command:
        """The command line. PlanError when the duration is not whole seconds or the target has no port."""
        seconds = whole_seconds(self.kind, duration_s)
        host, port = server_at(target)
        argv = [self.binary, "-s", host, "-p", port, f"--protocol={self.protocol}", f"--test-time={seconds}"]
        argv += [f"--threads={self.threads}", f"--clients={self.connections // self.threads}"]
        argv += [f"--ratio={self.writes}:{self.reads}", f"--pipeline={self.pipeline}"]
        argv += [f"--data-size={self.value_bytes}", f"--key-maximum={self.keys}", f"--key-pattern={self.key_pattern}"]
        argv += ["--distinct-client-seed", "--hide-histogram", f"--print-percentiles={_PERCENTILES}"]
        return Command(tuple(argv), timeout_s=seconds + MARGIN_S)

    def whole_of(self, results: Sequence[NamedResult]) -> NamedResult | None:
        return next((one for one in results if one.benchmark == _ALL), None)

    def completed(self, report: LoadReport) -> LoadReport:
        return replace(report, connections=self.connections, threads=self.threads)
