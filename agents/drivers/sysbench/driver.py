"""sysbench: processors, memory and files of the driver host, or a database under test."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from agents.base.command import Command, script
from agents.base.errors import PlanError
from agents.base.installed import program
from agents.base.rights import Rights
from agents.drivers.base.benchmark_tool import APART, BenchmarkTool, Word, server_at
from agents.drivers.base.driver import Driver, Reaches, Target
from agents.drivers.base.http_options import MARGIN_S, Binary, whole_seconds
from agents.readers.base.result_reader import ResultReader
from agents.readers.sysbench import SYSBENCH
from agents.results.report import LoadModel, LoadReport

Size = Annotated[str, Field(pattern=r"^[1-9][0-9]{0,5}[KMG]$")]
_NO_END = "--memory-total-size=10000T"
"""The memory test ends after an amount of data, of which the default is soon done."""
_PREPARE = f"""
"$1" "$2" $3 prepare {APART}
exec "$1" "$2" $3 run
"""
# The options are words of letters, digits and -._=/:, so that the shell may part them by their blanks.
_PREPARE_ANEW = '"$1" "$2" $3 cleanup >/dev/null 2>&1 || true' + _PREPARE
_OPTION = re.compile(r"--[a-z][a-z0-9_-]*(?:=[A-Za-z0-9._:-]*)?")


class Sysbench(BenchmarkTool):
    """sysbench 1.0 or later. cpu, memory and fileio load the driver host itself, oltp_* the database under test.

    fileio writes its files into the run's own directory, at the beginning of each warm-up phase.
    """

    concurrency_option: ClassVar[str] = "threads"
    divided: ClassVar[Mapping[str, str]] = {"threads": "threads", "rate_per_s": "events/s"}
    results: ClassVar[ResultReader] = SYSBENCH
    stops_at_failures: ClassVar[bool] = True
    version_pattern: ClassVar[re.Pattern[str]] = re.compile(r"^sysbench (1\.[0-9]\S{0,40})", re.ASCII | re.MULTILINE)
    install: ClassVar[str] = "install the package sysbench"

    rights: ClassVar[Rights] = Rights(
        does="works on the driver host's processors, memory and the run's own directory, or on the database under test",
        data=("user", "database", "memory_block", "file_total", "file_block"),
        gates={"binary": program("sysbench")},
    )

    kind: Literal["sysbench"] = "sysbench"
    test: Literal[
        "cpu",
        "memory",
        "fileio",
        "oltp_read_only",
        "oltp_read_write",
        "oltp_write_only",
        "oltp_point_select",
        "oltp_update_index",
        "oltp_update_non_index",
        "oltp_insert",
        "oltp_delete",
    ] = "cpu"
    threads: int = Field(1, ge=1, le=100_000)
    rate_per_s: int | None = Field(None, ge=1, le=100_000_000)
    """Events per second of its schedule; what is late waits, and its latency counts from when it began."""
    percentile: int = Field(95, ge=1, le=99)
    """The one percentile that it prints."""
    max_prime: int = Field(10_000, ge=3, le=100_000_000)
    """cpu: an event looks for the prime numbers up to here."""
    memory_block: Size = "1K"
    memory_access: Literal["seq", "rnd"] = "seq"
    memory_operation: Literal["read", "write"] = "write"
    file_total: Size = "2G"
    file_block: Size = "16K"
    file_mode: Literal["seqwr", "seqrewr", "seqrd", "rndrd", "rndwr", "rndrw"] = "rndrd"
    file_direct: bool = False
    """Past the cache of the host (O_DIRECT)."""
    database_kind: Literal["pgsql", "mysql"] = "pgsql"
    tables: int = Field(1, ge=1, le=10_000)
    table_rows: int = Field(10_000, ge=1, le=1_000_000_000)
    initialise: bool = False
    """oltp: make the tables anew at the beginning of each warm-up phase."""
    user: Word = "bench"
    """oltp: without a password, or for PostgreSQL with one in ~/.pgpass of the login on the driver host."""
    database: Word = "bench"
    binary: Binary = "sysbench"

    @model_validator(mode="after")
    def _makes_sense(self) -> Sysbench:
        if self.initialise and not self._is_oltp:
            raise ValueError(f"initialise makes the tables of oltp tests; {self.test} has none")
        return self

    @property
    def _is_oltp(self) -> bool:
        return self.test.startswith("oltp_")

    def why_indivisible(self) -> str:
        if self.initialise:
            return "each of them would make the tables anew; make them beforehand, without initialise"
        return ""

    @property
    def reaches(self) -> Reaches:
        return "tcp" if self._is_oltp else "own host"

    @property
    def prepares(self) -> bool:
        return self.initialise or self.test == "fileio"

    @property
    def load_model(self) -> LoadModel:
        return "open" if self.rate_per_s else "closed"

    def headlines(self) -> Sequence[str]:
        if self._is_oltp:
            return ("transactions_per_s",)
        if self.test == "fileio":
            figures = {"rd": ("reads_per_s",), "wr": ("writes_per_s",), "rw": ("reads_per_s", "writes_per_s")}
            return figures["wr" if self.file_mode == "seqrewr" else self.file_mode[3:]]
        return ("events_per_s",) if self.test == "cpu" else ("operations_per_s",)

    def warming_up(self) -> Driver:
        return PreparingSysbench.model_validate(self.model_dump()) if self.prepares else self

    def command(self, target: Target, duration_s: float) -> Command:
        """The command line. PlanError when the duration is not whole seconds or the target has no port."""
        options = self._options(target, duration_s)
        return Command((self.binary, self.test, *options, "run"), timeout_s=duration_s + MARGIN_S)

    def _options(self, target: Target, duration_s: float) -> list[str]:
        seconds = whole_seconds(self.kind, duration_s)
        found = [f"--threads={self.threads}", f"--time={seconds}", "--events=0", f"--percentile={self.percentile}"]
        if self.rate_per_s:
            found.append(f"--rate={self.rate_per_s}")
        if self.test == "cpu":
            return [*found, f"--cpu-max-prime={self.max_prime}"]
        if self.test == "memory":
            found += [f"--memory-block-size={self.memory_block}", _NO_END]
            return [*found, f"--memory-access-mode={self.memory_access}", f"--memory-oper={self.memory_operation}"]
        if self.test == "fileio":
            found += [f"--file-total-size={self.file_total}", f"--file-block-size={self.file_block}"]
            direct = ["--file-extra-flags=direct"] if self.file_direct else []
            return [*found, f"--file-test-mode={self.file_mode}", *direct]
        host, port = server_at(target)
        names = (("host", host), ("port", port), ("user", self.user), ("db", self.database))
        found += [
            f"--db-driver={self.database_kind}",
            *(f"--{self.database_kind}-{name}={value}" for name, value in names),
        ]
        return [*found, f"--tables={self.tables}", f"--table-size={self.table_rows}"]

    def completed(self, report: LoadReport) -> LoadReport:
        offered = {"offered_rate_per_s": float(self.rate_per_s)} if self.rate_per_s else {}
        return replace(report, threads=self.threads, details={**report.details, **offered})


class PreparingSysbench(Sysbench):
    """sysbench as it warms up: it makes its files or its tables first."""

    def command(self, target: Target, duration_s: float) -> Command:
        """Both commands, one after the other. PlanError as for the load alone."""
        options = self._options(target, duration_s)
        if odd := [one for one in options if not _OPTION.fullmatch(one)]:
            raise PlanError(f"sysbench cannot be given {odd[0][:200]}")
        text = _PREPARE_ANEW if self.initialise else _PREPARE
        return script(text, self.binary, self.test, " ".join(options), timeout_s=duration_s + MARGIN_S)
