"""The load tools that ask for no page, and Locust, each with the fewest options that it takes."""

from __future__ import annotations

from typing import Any

from agents.drivers import DRIVERS
from agents.drivers.base.benchmark_tool import BenchmarkTool
from agents.drivers.base.driver import Driver, Target
from agents.results.report import LoadReport
from tests.agents.recorded import Case, cases

TOOLS = {kind: tool for kind, tool in DRIVERS.items() if issubclass(tool, BenchmarkTool)}

LEAST: dict[str, dict[str, Any]] = {
    "gatling": {"users": 2},
    "iperf3": {"direction": "both"},
    "locust": {"users": 2},
    "memtier": {"connections": 2},
    "pgbench": {"clients": 2},
    "redis-benchmark": {"clients": 2, "requests": 100, "tests": ["set", "get"]},
    "ycsb": {"binding": "redis"},
}

TARGET = Target("tcp://sut:5432")

PAGE = Target("http://sut:8080/x?a=b;c")


def make(kind: str, **options: Any) -> Driver:
    return DRIVERS[kind].model_validate({**LEAST.get(kind, {}), **options})


def own_cases(kind: str) -> list[Case]:
    """The recorded outputs in the form that its command asks for."""
    return [case for case in cases(kind) if case.format == make(kind).form]


def own(report: LoadReport) -> dict[str, tuple[float, str, str]]:
    return {metric.name: (metric.value, metric.unit, metric.direction) for metric in report.own_metrics}
