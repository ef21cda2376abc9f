"""pgbench: transactions on PostgreSQL, closed-loop unless it has a rate."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints, model_validator

from agents.base.command import Command, script
from agents.base.installed import program
from agents.base.rights import Gate, Rights
from agents.drivers.base.benchmark_tool import APART, BenchmarkTool, Word, server_at
from agents.drivers.base.driver import Driver, Reaches, Target
from agents.drivers.base.http_options import MARGIN_S, Binary, whole_seconds
from agents.readers.base.named_result import NamedResult
from agents.readers.base.result_reader import ResultReader
from agents.readers.pgbench import PGBENCH
from agents.results.report import LatencyBasis, LoadModel, LoadReport

SCRIPT_NAME = "transaction.sql"
_INITIALISE = f"""
"$1" -i -q -s "$2" -h "$3" -p "$4" -U "$5" "$6" {APART}
shift 6
exec "$@"
"""


class Pgbench(BenchmarkTool):
    """pgbench. Transactions on PostgreSQL, as many as `clients` do; with `rate_tps` they follow a schedule.

    With a rate, latency counts from when a transaction was due.
    """

    concurrency_option: ClassVar[str] = "clients"
    divided: ClassVar[Mapping[str, str]] = {"clients": "clients", "rate_tps": "transactions/s"}
    results: ClassVar[ResultReader] = PGBENCH
    stops_at_failures: ClassVar[bool] = True
    version_pattern: ClassVar[re.Pattern[str]] = re.compile(r"^pgbench \(PostgreSQL\) (\S{1,40})", re.ASCII)
    install: ClassVar[str] = "install the PostgreSQL server's package (postgresql-contrib on older systems)"

    rights: ClassVar[Rights] = Rights(
        does="runs transactions on the database under test",
        data=("user", "database"),
        gates={
            "binary": program("pgbench"),
            "script": Gate("a `script`: pgbench and SQL can run programs", lambda tool: not tool.script),
        },
    )

    kind: Literal["pgbench"] = "pgbench"
    clients: int = Field(ge=1, le=100_000)
    """Connections, each of which does one transaction after the other."""
    jobs: int = Field(1, ge=1, le=1024)
    """Threads of pgbench that the clients are divided between."""
    builtin: Literal["tpcb-like", "simple-update", "select-only"] = "tpcb-like"
    script: Annotated[str, StringConstraints(max_length=256_000, strip_whitespace=False)] = ""
    """The transaction as a pgbench script, in place of the built-in one; it needs the role admin."""
    query_mode: Literal["simple", "extended", "prepared"] = "simple"
    rate_tps: int | None = Field(None, ge=1, le=100_000_000)
    """Transactions per second of its schedule. Without it each client waits for its answers."""
    latency_limit_ms: int | None = Field(None, ge=1, le=3_600_000)
    """Transactions that take longer are counted as late; with a rate, those that would begin later are skipped."""
    max_tries: int = Field(1, ge=1, le=1_000_000)
    """How often a transaction is tried that failed by a serialization or deadlock error (pgbench 15 or later)."""
    reconnect: bool = False
    """A new connection for each transaction."""
    scale: int = Field(1, ge=1, le=1_000_000)
    """Of the built-in tables: 1 is 100,000 accounts, some 16 MB."""
    initialise: bool = False
    """Make the built-in tables anew at the beginning of each warm-up phase."""
    progress_s: int | None = Field(None, ge=1, le=3600)
    """Print figures so often; they stand in its output."""
    seed: int | None = Field(None, ge=0, le=4_294_967_295)
    user: Word = "bench"
    """Without a password, or with one in ~/.pgpass of the login on the driver host."""
    database: Word = "bench"
    binary: Binary = "pgbench"

    @model_validator(mode="after")
    def _makes_sense(self) -> Pgbench:
        if self.jobs > self.clients:
            raise ValueError(f"{self.jobs} jobs need at least {self.jobs} clients")
        return self

    def why_indivisible(self) -> str:
        if self.initialise:
            return "each of them would make the tables anew; make them beforehand, without initialise"
        return ""

    @property
    def reaches(self) -> Reaches:
        return "tcp"

    @property
    def prepares(self) -> bool:
        return self.initialise

    @property
    def load_model(self) -> LoadModel:
        return "open" if self.rate_tps else "closed"

    @property
    def latency_basis(self) -> LatencyBasis:
        return "response_time" if self.rate_tps else "service_time"

    def warming_up(self) -> Driver:
        return PreparingPgbench.model_validate(self.model_dump()) if self.initialise else self

    def files(self) -> dict[str, str]:
        return {SCRIPT_NAME: self.script} if self.script else {}

    def command(self, target: Target, duration_s: float) -> Command:
        """The command line. PlanError when the duration is not whole seconds or the target has no port."""
        seconds = whole_seconds(self.kind, duration_s)
        host, port = server_at(target)
        argv = [self.binary, "-n", "-h", host, "-p", port, "-U", self.user]
        argv += ["-c", str(self.clients), "-j", str(self.jobs), "-T", str(seconds), "-M", self.query_mode]
        # The scale is known from the built-in tables; a script of one's own asks for it as :scale.
        argv += ["-s", str(self.scale), "-f", SCRIPT_NAME] if self.script else ["-b", self.builtin]
        numbers = (("-R", self.rate_tps), ("-L", self.latency_limit_ms), ("-P", self.progress_s))
        argv += [word for option, value in numbers if value is not None for word in (option, str(value))]
        if self.seed is not None:
            argv.append(f"--random-seed={self.seed}")
        if self.max_tries > 1:
            argv.append(f"--max-tries={self.max_tries}")
        if self.reconnect:
            argv.append("-C")
        return Command((*argv, self.database), timeout_s=seconds + MARGIN_S)

    def whole_of(self, results: Sequence[NamedResult]) -> NamedResult | None:
        return results[0] if results else None

    def completed(self, report: LoadReport) -> LoadReport:
        offered = {"offered_rate_tps": float(self.rate_tps)} if self.rate_tps else {}
        return replace(report, connections=self.clients, threads=self.jobs, details={**report.details, **offered})


class PreparingPgbench(Pgbench):
    """pgbench as it warms the server up: it makes its tables first."""

    def command(self, target: Target, duration_s: float) -> Command:
        load = super().command(target, duration_s)
        host, port = server_at(target)
        first = (self.binary, str(self.scale), host, port, self.user, self.database)
        return script(_INITIALISE, *first, *load.argv, timeout_s=load.timeout_s)
