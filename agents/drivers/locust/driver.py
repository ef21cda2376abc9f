"""Locust: users of a web site, written in Python, each of whom waits for the answer."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, ClassVar, Literal
from urllib.parse import urlsplit

from pydantic import Field, StringConstraints

from agents.base.command import Command
from agents.base.installed import program
from agents.base.rights import Gate, Rights
from agents.drivers.base.benchmark_tool import BenchmarkTool
from agents.drivers.base.driver import Reaches, Target
from agents.drivers.base.http_options import (
    MARGIN_S,
    SENDS,
    Binary,
    Body,
    Headers,
    Method,
    Timeout,
    checked_url,
    whole_seconds,
)
from agents.drivers.base.named_report import name_of_part
from agents.readers.base.json_node import Node, load_json
from agents.readers.base.named_result import Figures, NamedResult, Readout
from agents.readers.base.result_reader import ResultForm, ResultReader
from agents.readers.locust import LOCUST
from agents.results.report import LoadReport

SCRIPT_NAME = "locustfile.py"
ASKED_NAME = "asked.json"
PATH = "BENCHHUB_PATH"
_ALL = "Aggregated"
_OWN_SCRIPT = f"""\
import json
import os

from locust import HttpUser, constant, task

with open("{ASKED_NAME}", encoding="utf-8") as file:
    asked = json.load(file)
path = os.environ["{PATH}"]


class Load(HttpUser):
    wait_time = constant(asked["think_time_s"])

    @task
    def ask(self):
        self.client.request(
            asked["method"],
            path,
            headers=asked["headers"],
            data=asked["body"].encode() or None,
            timeout=asked["timeout_s"],
            allow_redirects=False,
            verify=not asked["insecure"],
        )
"""


class Locust(BenchmarkTool):
    """Locust. Each user waits for its answer, and for `think_time_s`, before it asks again.

    A `script` of your own is a locustfile; BENCHHUB_PATH in its environment is the workload's path.
    """

    concurrency_option: ClassVar[str] = "users"
    divided: ClassVar[Mapping[str, str]] = {"users": "users"}
    results: ClassVar[ResultReader] = LOCUST
    version_pattern: ClassVar[re.Pattern[str]] = re.compile(r"^locust ([0-9]\S{0,40})", re.ASCII | re.MULTILINE)
    install: ClassVar[str] = "install it with pip install locust"

    rights: ClassVar[Rights] = Rights(
        does=SENDS,
        data=("headers", "body"),
        gates={
            "binary": program("locust"),
            "script": Gate("a `script`: Python does anything", lambda tool: not tool.script),
        },
    )

    kind: Literal["locust"] = "locust"
    users: int = Field(ge=1, le=1_000_000)
    spawn_per_s: int | None = Field(None, ge=1, le=1_000_000)
    """How many users begin in a second; without it, all in the first one."""
    think_time_s: float = Field(0, ge=0, le=3600)
    method: Method = "GET"
    headers: Headers = Field(default_factory=dict)
    body: Body = ""
    timeout_s: Timeout = 30
    insecure: bool = False
    """Accept any certificate."""
    script: Annotated[str, StringConstraints(max_length=256_000, strip_whitespace=False)] = ""
    """A locustfile, in place of the options from think_time_s on; it needs the role admin."""
    binary: Binary = "locust"

    @property
    def reaches(self) -> Reaches:
        return "http"

    @property
    def result_form(self) -> ResultForm:
        return self.results.forms[3]

    def headlines(self) -> Sequence[str]:
        return ("throughput_rps",)

    def files(self) -> dict[str, str]:
        if self.script:
            return {SCRIPT_NAME: self.script}
        asked = self.model_dump(include={"think_time_s", "method", "headers", "body", "timeout_s", "insecure"})
        return {SCRIPT_NAME: _OWN_SCRIPT, ASKED_NAME: json.dumps(asked)}

    def command(self, target: Target, duration_s: float) -> Command:
        """The command line. PlanError when the duration is not whole seconds or the URL is not HTTP."""
        seconds = whole_seconds(self.kind, duration_s)
        url = urlsplit(checked_url(target))
        path = (url.path or "/") + (f"?{url.query}" if url.query else "")
        argv = ["env", f"{PATH}={path}", self.binary, "--headless", "--json", "--only-summary", "--loglevel=ERROR"]
        argv += [f"--locustfile={SCRIPT_NAME}", f"--host={url.scheme}://{url.netloc}"]
        argv += [f"--users={self.users}", f"--spawn-rate={self.spawn_per_s or self.users}", f"--run-time={seconds}s"]
        # Requests that fail are counted; they are no reason to call the whole run failed.
        argv.append("--exit-code-on-error=0")
        return Command(tuple(argv), timeout_s=seconds + self.timeout_s + MARGIN_S)

    def whole_of(self, results: Sequence[NamedResult]) -> NamedResult | None:
        return next((one for one in results if one.benchmark == _ALL), super().whole_of(results))

    def part_name(self, result: NamedResult) -> str:
        return name_of_part(f"{result.params.get('method') or ''} {result.benchmark}")

    def report_in(self, output: str) -> str:
        """Its JSON with all requests together, where it has several names: its CSV has them, up to its last second."""
        document, _ = load_json(output, "Locust")
        entries = document.elements()
        return output if len(entries) < 2 else json.dumps([*document.value, _all_of(entries)])

    def report_of(self, readout: Readout) -> LoadReport:
        """The report; a percentile beyond the longest time is that time: Locust rounds times, but not the longest."""
        results = tuple(replace(one, figures=_within(one.figures)) for one in readout.results)
        return super().report_of(replace(readout, results=results))

    def completed(self, report: LoadReport) -> LoadReport:
        return replace(report, users=self.users)


def _within(figures: Figures) -> dict[str, object]:
    """The figures with no percentile outside of the shortest and the longest time."""
    low, high = figures.get("latency_min_ms"), figures.get("latency_max_ms")
    if not isinstance(low, int | float) or not isinstance(high, int | float):
        return dict(figures)
    return {
        name: min(max(value, low), high) if name.startswith("latency_p") and isinstance(value, int | float) else value
        for name, value in figures.items()
    }


def _all_of(entries: Sequence[Node]) -> dict[str, object]:
    """What Locust would say of all names together. Raises ParseError."""
    times: Counter[str] = Counter()
    for entry in entries:
        times.update({name: seen.count() for name, seen in entry.at("response_times").items()})
    counts = ("num_requests", "num_none_requests", "num_failures")
    sums = ("total_response_time", "total_content_length")
    found: dict[str, object] = {name: sum(entry.known_count(name) or 0 for entry in entries) for name in counts}
    found |= {name: math.fsum(entry.known(name) or 0 for entry in entries) for name in sums}
    for name in ("start_time", "min_response_time"):
        found[name] = min(_known(entries, name), default=None)
    for name in ("last_request_timestamp", "max_response_time"):
        found[name] = max(_known(entries, name), default=None)
    return {"name": _ALL, "method": "", "response_times": dict(times), **found}


def _known(entries: Sequence[Node], name: str) -> list[float]:
    return [value for entry in entries if (value := entry.known(name)) is not None]
