"""redis-benchmark: commands to Redis or Valkey, closed-loop, an amount of requests for each command."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from agents.base.command import Command
from agents.base.errors import ParseError
from agents.base.installed import program
from agents.base.rights import Rights
from agents.drivers.base.benchmark_tool import BenchmarkTool, server_at
from agents.drivers.base.driver import Reaches, Target
from agents.drivers.base.http_options import MARGIN_S, Binary, whole_seconds
from agents.readers.base.named_result import NamedResult
from agents.readers.base.result_reader import ResultReader
from agents.readers.redis_benchmark import REDIS_BENCHMARK
from agents.results.report import LoadReport

Test = Literal[
    "ping_inline",
    "set",
    "get",
    "incr",
    "lpush",
    "rpush",
    "lpop",
    "rpop",
    "sadd",
    "hset",
    "spop",
    "zadd",
    "zpopmin",
]

MORE_TIME = "give the phase more time, or fewer requests"
SAID_ALWAYS = ('"test",', "WARNING: ")
"""How lines begin that tell neither of a result nor of an error."""


class RedisBenchmark(BenchmarkTool):
    """redis-benchmark. It does `requests` of each of `tests`, one after the other, within the phase's duration.

    With one test its figures are the run's; with several each has figures of its own, such as get.throughput_rps.
    """

    concurrency_option: ClassVar[str] = "clients"
    divided: ClassVar[Mapping[str, str]] = {"clients": "clients", "requests": "requests"}
    results: ClassVar[ResultReader] = REDIS_BENCHMARK
    stops_at_failures: ClassVar[bool] = True
    version_pattern: ClassVar[re.Pattern[str]] = re.compile(
        r"^(?:redis|valkey)-benchmark v?([0-9]\S{0,40})", re.ASCII | re.MULTILINE
    )
    install: ClassVar[str] = "install the package redis-tools or valkey-tools"

    rights: ClassVar[Rights] = Rights(
        does="sends commands to the server under test", gates={"binary": program("redis-benchmark", "valkey-benchmark")}
    )

    kind: Literal["redis-benchmark"] = "redis-benchmark"
    clients: int = Field(ge=1, le=100_000)
    """Connections, each of which waits for the answers to what it sent."""
    requests: int = Field(ge=1, le=10_000_000_000)
    """Of each test, by all clients together."""
    tests: tuple[Test, ...] = Field(("get",), min_length=1, max_length=13)
    threads: int = Field(1, ge=1, le=500)
    pipeline: int = Field(1, ge=1, le=100_000)
    """Requests that a client sends before it waits."""
    value_bytes: int = Field(3, ge=1, le=1_073_741_824)
    keys: int | None = Field(None, ge=1, le=1_000_000_000_000)
    """How many keys are used by chance; without it, always the same one."""
    keep_alive: bool = True
    database: int = Field(0, ge=0, le=100_000)
    binary: Binary = "redis-benchmark"

    @model_validator(mode="after")
    def _makes_sense(self) -> RedisBenchmark:
        if len(set(self.tests)) < len(self.tests):
            raise ValueError("tests: name each test once")
        if self.requests < self.clients:
            raise ValueError(f"requests ({self.requests}) must be at least the number of clients ({self.clients})")
        return self

    @property
    def reaches(self) -> Reaches:
        return "tcp"

    @property
    def may_end_early(self) -> bool:
        return True

    def headlines(self) -> Sequence[str]:
        if len(self.tests) == 1:
            return ("throughput_rps",)
        return tuple(f"{test}.throughput_rps" for test in self.tests)

    def command(self, target: Target, duration_s: float) -> Command:
        """The command line. PlanError when the duration is not whole seconds or the target has no port."""
        seconds = whole_seconds(self.kind, duration_s)
        host, port = server_at(target)
        # It tries for ever to connect to a server that is gone.
        argv = ["timeout", str(seconds), self.binary, "-h", host, "-p", port, "--csv", "-t", ",".join(self.tests)]
        argv += ["-c", str(self.clients), "-n", str(self.requests), "-d", str(self.value_bytes)]
        argv += ["-P", str(self.pipeline), "-k", "1" if self.keep_alive else "0"]
        argv += ["-r", str(self.keys)] if self.keys is not None else []
        argv += ["--threads", str(self.threads)] if self.threads > 1 else []
        argv += ["--dbnum", str(self.database)] if self.database else []
        return Command(tuple(argv), timeout_s=seconds + MARGIN_S)

    def whole_of(self, results: Sequence[NamedResult]) -> NamedResult | None:
        """The only one of one test; where several were asked for, one that was reached alone is a part of them."""
        return super().whole_of(results) if len(self.tests) == 1 else None

    def report_in(self, output: str) -> str:
        """Its warnings and errors stand behind the table, where no file of it has any."""
        lines = output.splitlines(keepends=True)
        return "".join(sorted(lines, key=lambda line: line.startswith('"')))

    def parse(self, output: str) -> LoadReport:
        """The report in the tool's output. Raises ParseError when it is not whole.

        It prints nothing of a test before its last request, so that what its time ended has no line of its own.
        """
        if not any(line and not line.startswith(SAID_ALWAYS) for line in output.splitlines()):
            raise ParseError(f"its time was over before {self.tests[0]} was done: {MORE_TIME}")
        return super().parse(output)

    def completed(self, report: LoadReport) -> LoadReport:
        report = replace(report, connections=self.clients, threads=self.threads)
        if not report.complete:
            return report
        done = {metric.name for metric in report.own_metrics}
        if report.usable and (
            missing := [name for name in self.headlines() if len(self.tests) > 1 and name not in done]
        ):
            test = missing[0].partition(".")[0]
            why = f"its time was over before {test} was done: {MORE_TIME}"
            return replace(report, usable=False, why=why)
        rates = {one.name: one.value for one in report.own_metrics}
        if report.throughput_rps:
            rates["throughput_rps"] = report.throughput_rps
        took = [self.requests / rates[name] for name in self.headlines() if rates.get(name)]
        duration_s = sum(took) if len(took) == len(self.tests) else None  # a rate is its requests by their time
        return replace(report, requests=self.requests * len(self.tests), duration_s=duration_s)
