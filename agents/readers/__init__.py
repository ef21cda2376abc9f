"""Readers of result files of tools that BenchHub need not run. A new one is a file, a line below, cases, a row."""

from __future__ import annotations

from agents.readers.artillery import ARTILLERY
from agents.readers.base.result_reader import ResultReader
from agents.readers.benchmarkdotnet import BENCHMARKDOTNET
from agents.readers.bmf import BMF
from agents.readers.criterion import CRITERION
from agents.readers.fio import FIO
from agents.readers.gatling import GATLING
from agents.readers.github_action_benchmark import GITHUB_ACTION_BENCHMARK
from agents.readers.go_bench import GO_BENCH
from agents.readers.google_benchmark import GOOGLE_BENCHMARK
from agents.readers.hammerdb import HAMMERDB
from agents.readers.hyperfine import HYPERFINE
from agents.readers.iperf3 import IPERF3
from agents.readers.jmh import JMH
from agents.readers.locust import LOCUST
from agents.readers.memtier import MEMTIER
from agents.readers.pgbench import PGBENCH
from agents.readers.pytest_benchmark import PYTEST_BENCHMARK
from agents.readers.redis_benchmark import REDIS_BENCHMARK
from agents.readers.renaissance import RENAISSANCE
from agents.readers.sysbench import SYSBENCH
from agents.readers.taurus import TAURUS
from agents.readers.ycsb import YCSB

RESULT_READERS: dict[str, ResultReader] = {
    reader.kind: reader
    for reader in (
        ARTILLERY,
        BENCHMARKDOTNET,
        BMF,
        CRITERION,
        FIO,
        GATLING,
        GITHUB_ACTION_BENCHMARK,
        GO_BENCH,
        GOOGLE_BENCHMARK,
        HAMMERDB,
        HYPERFINE,
        IPERF3,
        JMH,
        LOCUST,
        MEMTIER,
        PGBENCH,
        PYTEST_BENCHMARK,
        REDIS_BENCHMARK,
        RENAISSANCE,
        SYSBENCH,
        TAURUS,
        YCSB,
    )
}
