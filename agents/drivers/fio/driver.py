"""fio: reads and writes of files on the driver host."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints, model_validator

from agents.base.command import Command
from agents.base.installed import program
from agents.base.rights import Gate, Rights
from agents.drivers.base.benchmark_tool import BenchmarkTool
from agents.drivers.base.driver import Reaches, Target
from agents.drivers.base.http_options import MARGIN_S, Binary, whole_seconds
from agents.drivers.base.named_report import name_of_part
from agents.readers.base.named_result import NamedResult
from agents.readers.base.result_reader import ResultReader
from agents.readers.fio import FIO
from agents.results.report import LoadModel, LoadReport

JOB_NAME = "job.fio"
DURATION = "BENCHHUB_DURATION_S"
_NAME = "benchhub"
_MIXED = ("rw", "randrw")


class Fio(BenchmarkTool):
    """fio. Reads and writes files in `directory` of the driver host, the run's own where none is named.

    A `job` file of your own may say anything that fio can do; ${BENCHHUB_DURATION_S} in it is the phase's duration.
    """

    concurrency_option: ClassVar[str] = ""
    divided: ClassVar[Mapping[str, str]] = {}
    results: ClassVar[ResultReader] = FIO
    stops_at_failures: ClassVar[bool] = True
    version_pattern: ClassVar[re.Pattern[str]] = re.compile(r"^fio-([0-9]\S{0,40})", re.ASCII | re.MULTILINE)
    install: ClassVar[str] = "install the package fio"

    rights: ClassVar[Rights] = Rights(
        does="reads and writes files in the run's own directory on the driver host",
        data=("block_size", "size"),
        gates={
            "binary": program("fio"),
            "job": Gate("a `job`: fio runs programs and overwrites devices that it names", lambda tool: not tool.job),
            "directory": Gate("a `directory` other than the run's own", lambda tool: not tool.directory),
        },
    )

    kind: Literal["fio"] = "fio"
    operation: Literal["read", "write", "rw", "randread", "randwrite", "randrw"] = "randread"
    block_size: str = Field("4k", pattern=r"^[1-9][0-9]{0,6}[km]?$")
    size: str = Field("1g", pattern=r"^[1-9][0-9]{0,5}[kmg]$")
    """Of the file of each job."""
    jobs: int = Field(1, ge=1, le=1024)
    """Processes that do the same, each on a file of its own; their figures are added up."""
    depth: int = Field(1, ge=1, le=65_536)
    """Requests under way at once of each job, with an engine that can do so (libaio, io_uring)."""
    engine: Literal["psync", "libaio", "io_uring", "mmap"] = "psync"
    direct: bool = True
    """Past the cache of the host (O_DIRECT)."""
    read_pct: int = Field(50, ge=0, le=100)
    """The share of reads of rw and randrw."""
    fsync: int = Field(0, ge=0, le=1_000_000)
    """An fsync after so many writes; 0 = none."""
    rate_iops: int | None = Field(None, ge=1, le=100_000_000)
    """At most so many requests per second of each job and direction."""
    directory: str = Field("", pattern=r"^(?:/[A-Za-z0-9._@%+-]{1,100}){0,20}$")
    job: Annotated[str, StringConstraints(max_length=256_000, strip_whitespace=False)] = ""
    """A job file, in place of all options above; it needs the role admin."""
    binary: Binary = "fio"

    @model_validator(mode="after")
    def _makes_sense(self) -> Fio:
        if self.depth > 1 and self.engine in ("psync", "mmap"):
            raise ValueError(
                f"{self.engine} has one request under way; use libaio or io_uring for a depth of {self.depth}"
            )
        if self.direct and self.engine == "mmap":
            raise ValueError("mmap goes through the cache of the host; switch direct off")
        return self

    def why_indivisible(self) -> str:
        return "every host has disks of its own"

    @property
    def reaches(self) -> Reaches:
        return "own host"

    @property
    def may_end_early(self) -> bool:
        return bool(self.job)

    @property
    def load_model(self) -> LoadModel:
        return "closed"

    def headlines(self) -> Sequence[str]:
        if self.job:
            return ()
        return ("read.iops", "write.iops") if self.operation in _MIXED else ("iops",)

    def files(self) -> dict[str, str]:
        return {JOB_NAME: self.job} if self.job else {}

    def command(self, target: Target, duration_s: float) -> Command:
        """The command line; the target does not matter. PlanError when the duration is not whole seconds."""
        seconds = whole_seconds(self.kind, duration_s)
        argv = [self.binary, "--output-format=json+"]
        if self.job:
            argv = ["env", f"{DURATION}={seconds}", *argv, JOB_NAME]
            return Command(tuple(argv), timeout_s=seconds + MARGIN_S)
        argv += [f"--name={_NAME}", f"--directory={self.directory or '.'}", "--unlink=1", "--group_reporting"]
        argv += [f"--rw={self.operation}", f"--bs={self.block_size}", f"--size={self.size}"]
        argv += [f"--numjobs={self.jobs}", f"--iodepth={self.depth}", f"--ioengine={self.engine}"]
        argv += [f"--direct={self.direct:d}", "--time_based", f"--runtime={seconds}", "--lat_percentiles=1"]
        argv += [f"--rwmixread={self.read_pct}"] if self.operation in _MIXED else []
        argv += [f"--fsync={self.fsync}"] if self.fsync else []
        argv += [f"--rate_iops={self.rate_iops}"] if self.rate_iops is not None else []
        return Command(tuple(argv), timeout_s=seconds + MARGIN_S)

    def part_name(self, result: NamedResult) -> str:
        direction = str(result.params.get("direction") or "")
        return direction if not self.job else name_of_part(f"{result.benchmark} {direction}")

    def completed(self, report: LoadReport) -> LoadReport:
        return replace(report, threads=None if self.job else self.jobs)
