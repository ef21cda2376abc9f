"""YCSB: operations of a workload on a database or cache, closed-loop unless it has a target."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Literal

from pydantic import Field

from agents.base.command import Command, script
from agents.base.installed import installed_home
from agents.base.rights import Rights
from agents.drivers.base.benchmark_tool import APART, BenchmarkTool, Word, server_at
from agents.drivers.base.driver import Driver, Reaches, Target
from agents.drivers.base.http_options import MARGIN_S, version_in, whole_seconds
from agents.readers.base.named_result import NamedResult
from agents.readers.base.result_reader import ResultReader
from agents.readers.ycsb import YCSB
from agents.results.report import LoadModel, LoadReport

_ALL = "OVERALL"
_ENDLESS = 2_147_483_647
"""The most operations that it can be asked for: the duration ends it before."""
_VERSION_SCRIPT = """
[ -x "$1/bin/ycsb.sh" ] || { echo "there is no YCSB in $1 on this host: install a release of it there" >&2; exit 127; }
find "$1/lib/" -name 'core-*.jar'
"""
_VERSION = re.compile(r"/core-([0-9][0-9A-Za-z.-]{0,30})\.jar", re.ASCII)
# Loading is an amount of work: neither the duration nor the schedule of the load is its own.
_LOAD_FIRST = f"""
program=$1 binding=$2
shift 2
"$program" load "$binding" "$@" -target 0 -p maxexecutiontime=0 {APART}
exec "$program" run "$binding" "$@"
"""


class Ycsb(BenchmarkTool):
    """YCSB. Operations of one of its workloads on the server under test; with `target_per_s` they follow a schedule.

    Each operation has figures of its own, such as read.latency_p99_ms; intended_read counts from when it was due.
    """

    concurrency_option: ClassVar[str] = "threads"
    divided: ClassVar[Mapping[str, str]] = {"threads": "threads", "target_per_s": "operations/s"}
    results: ClassVar[ResultReader] = YCSB
    version_pattern: ClassVar[re.Pattern[str]] = _VERSION
    install: ClassVar[str] = "install a release of it in its home"

    rights: ClassVar[Rights] = Rights(
        does="runs operations on the server under test",
        data=("user", "database"),
        gates={"home": installed_home("home")},
    )

    kind: Literal["ycsb"] = "ycsb"
    binding: Literal["basic", "cassandra-cql", "jdbc", "memcached", "mongodb", "redis"]
    """What speaks to the server; jdbc is for PostgreSQL, with its driver in lib of the home; basic does nothing."""
    workload: Literal["workloada", "workloadb", "workloadc", "workloadd", "workloade", "workloadf"] = "workloada"
    threads: int = Field(1, ge=1, le=100_000)
    target_per_s: int | None = Field(None, ge=1, le=100_000_000)
    """Operations per second of its schedule, of all threads together."""
    records: int = Field(1000, ge=1, le=2_147_483_647)
    initialise: bool = False
    """Load the records at the beginning of each warm-up phase, into a database that has none of them."""
    user: Word = "ycsb"
    database: Word = "ycsb"
    """Of jdbc and mongodb; cassandra-cql takes it as its keyspace."""
    home: str = Field("/opt/ycsb", pattern=r"^/[A-Za-z0-9_./+-]{0,200}$")
    """Where a release of YCSB is unpacked on the driver host."""

    def why_indivisible(self) -> str:
        if self.initialise:
            return "each of them would load the records; load them beforehand, without initialise"
        return ""

    @property
    def reaches(self) -> Reaches:
        return "tcp"

    @property
    def prepares(self) -> bool:
        return self.initialise

    @property
    def load_model(self) -> LoadModel:
        return "open" if self.target_per_s else "closed"

    def warming_up(self) -> Driver:
        return PreparingYcsb.model_validate(self.model_dump()) if self.initialise else self

    def version_command(self) -> Command:
        return script(_VERSION_SCRIPT, self.home)

    def parse_version(self, output: bytes) -> str:
        return version_in(output, self.version_pattern, self.home, "YCSB")

    def command(self, target: Target, duration_s: float) -> Command:
        """The command line. PlanError when the duration is not whole seconds or the target has no port."""
        argv = (self._program, "run", self.binding, *self._options(target, duration_s))
        return Command(argv, timeout_s=duration_s + 2 * MARGIN_S)  # it starts a Java VM before and closes it behind

    @property
    def _program(self) -> str:
        return f"{self.home}/bin/ycsb.sh"

    def _options(self, target: Target, duration_s: float) -> list[str]:
        seconds = whole_seconds(self.kind, duration_s)
        properties = {
            "recordcount": self.records,
            "operationcount": _ENDLESS,
            "maxexecutiontime": seconds,
            "measurementtype": "hdrhistogram",
            "hdrhistogram.percentiles": "50,90,95,99,99.9",
            "measurement.interval": "both" if self.target_per_s else "op",
            **self._place(*server_at(target)),
        }
        found = ["-P", f"{self.home}/workloads/{self.workload}", "-threads", str(self.threads)]
        found += ["-target", str(self.target_per_s)] if self.target_per_s else []
        return [*found, *(word for name, value in properties.items() for word in ("-p", f"{name}={value}"))]

    def _place(self, host: str, port: str) -> dict[str, str]:
        """The properties of the binding that say where the server is."""
        there = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        return {
            "basic": {"basicdb.verbose": "false"},  # else it prints each operation
            "cassandra-cql": {"hosts": host, "port": port, "cassandra.keyspace": self.database},
            "jdbc": {
                "db.driver": "org.postgresql.Driver",
                "db.url": f"jdbc:postgresql://{there}/{self.database}",
                "db.user": self.user,
            },
            "memcached": {"memcached.hosts": there},
            "mongodb": {"mongodb.url": f"mongodb://{there}/{self.database}"},
            "redis": {"redis.host": host, "redis.port": port},
        }[self.binding]

    def whole_of(self, results: Sequence[NamedResult]) -> NamedResult | None:
        return next((one for one in results if one.benchmark == _ALL), None)

    def completed(self, report: LoadReport) -> LoadReport:
        offered = {"offered_rate_per_s": float(self.target_per_s)} if self.target_per_s else {}
        return replace(report, threads=self.threads, details={**report.details, **offered})


class PreparingYcsb(Ycsb):
    """YCSB as it warms up: it loads its records first."""

    def command(self, target: Target, duration_s: float) -> Command:
        """Both commands, one after the other. PlanError as for the load alone."""
        options = self._options(target, duration_s)
        return script(_LOAD_FIRST, self._program, self.binding, *options, timeout_s=duration_s + 2 * MARGIN_S)
