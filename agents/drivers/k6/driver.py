"""k6: load of virtual users that run a script, closed-loop or at an arrival rate."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from agents.base.command import Command, script
from agents.base.installed import program
from agents.base.rights import Gate, Rights
from agents.drivers.base.command_line import CommandGrammar, Grammar
from agents.drivers.base.driver import Target
from agents.drivers.base.http_options import (
    MARGIN_S,
    SENDS,
    Binary,
    Body,
    Headers,
    Method,
    Rate,
    Timeout,
    checked_url,
    whole_seconds,
)
from agents.drivers.base.http_tool import HttpTool
from agents.drivers.k6 import json_report as k6_json
from agents.drivers.k6 import text_report as k6_text
from agents.formats.json_document import has_no_object, has_object
from agents.formats.report_format import ReportFormat
from agents.results.report import LatencyBasis, LoadErrors, LoadModel, LoadReport

SCRIPT_NAME = "load.js"

# Every failed request would be a line of output; they are counted anyway. A script that fails must be heard.
_RUN = """
"$@" --log-output=file=./k6.log,level=error
status=$?
[ "$status" = 0 ] || head -c 4000 k6.log >&2
rm -f k6.log
exit "$status"
"""

# The error codes of k6: 1050 timeout, 11xx DNS, 121x dial, 12xx TCP, 13xx TLS, 14xx and 15xx statuses.
_OWN_SCRIPT = """\
import http from "k6/http";
import { Counter } from "k6/metrics";

const asked = OPTIONS;
const counters = {};
for (const kind of ["connect", "read", "write", "timeout", "status", "other"]) {
  counters[kind] = new Counter("benchhub_errors_" + kind);
}

function kindOf(code) {
  if (code === 1050) return "timeout";
  if ((code >= 1100 && code < 1200) || (code >= 1210 && code < 1220) || (code >= 1300 && code < 1400)) return "connect";
  if (code === 1201) return "write";
  if (code >= 1200 && code < 1300) return "read";
  return code >= 1400 && code < 1600 ? "status" : "other";
}

export const options = {
  scenarios: { load: asked.scenario },
  summaryTrendStats: ["avg", "min", "med", "max", "p(75)", "p(90)", "p(95)", "p(99)", "p(99.9)", "p(99.99)"],
  discardResponseBodies: true,
  insecureSkipTLSVerify: asked.insecure,
  noConnectionReuse: !asked.keep_alive,
};

export default function () {
  const parameters = { headers: asked.headers, redirects: 0, timeout: asked.timeout_s + "s" };
  const answer = http.request(asked.method, __ENV.BENCHHUB_URL, asked.body || null, parameters);
  if (answer.error_code) counters[kindOf(answer.error_code)].add(1);
}

export function handleSummary(data) {
  return { stdout: JSON.stringify(data) + "\\n" };
}
"""


class K6(HttpTool):
    """k6. With `arrival_rate_rps` requests start when they are due; those that find no free user are dropped.

    Latency counts from when a request was sent. A script of your own finds the address in `__ENV.BENCHHUB_URL`, is run
    with `users` for the duration of the phase and prints what it likes at the end: k6's text or its `handleSummary`.
    """

    latency_basis: ClassVar[LatencyBasis] = "service_time"
    formats: ClassVar[tuple[ReportFormat, ...]] = (
        ReportFormat(k6_json.SUMMARY_FORMAT, k6_json.looks_like_summary, k6_json.read_json),
        ReportFormat(k6_json.EXPORT_FORMAT, has_object, k6_json.read_json),
        ReportFormat(k6_text.FORMAT, has_no_object, k6_text.read_text),
    )
    grammar: ClassVar[CommandGrammar | None] = Grammar(
        ("k6",), {"-d": "duration", "--duration": "duration"}, frozenset(("-e", "-u", "--vus", "-i", "--out", "-o"))
    )
    rate_option: ClassVar[str] = "arrival_rate_rps"
    concurrency_option: ClassVar[str] = "users"
    divided: ClassVar[Mapping[str, str]] = {
        "users": "users",
        "max_users": "users at most",
        "arrival_rate_rps": "requests/s",
    }
    version_argument: ClassVar[str] = "version"
    version_pattern: ClassVar[re.Pattern[str]] = re.compile(r"^k6(?:\.exe)? v(\S{1,40})", re.ASCII | re.MULTILINE)
    install: ClassVar[str] = "install it from its package repository or its releases"

    rights: ClassVar[Rights] = Rights(
        does=SENDS,
        data=("headers", "body"),
        gates={
            "script": Gate("a `script`: JavaScript opens files and sends them anywhere", lambda tool: not tool.script),
            "binary": program("k6"),
        },
    )

    kind: Literal["k6"] = "k6"
    users: int = Field(ge=1, le=100_000)
    arrival_rate_rps: Rate | None = None
    max_users: int | None = Field(None, ge=1, le=100_000)
    """How many users an arrival rate may take; `users` when it is not given."""
    keep_alive: bool = True
    insecure: bool = False
    """Accept any certificate."""
    method: Method = "GET"
    headers: Headers = Field(default_factory=dict)
    body: Body = ""
    timeout_s: Timeout = 60
    script: str = Field("", max_length=256_000)
    """JavaScript in place of BenchHub's own; then the options above, from the rate on, are the script's business."""
    binary: Binary = "k6"

    @model_validator(mode="after")
    def _users_fit(self) -> K6:
        if self.max_users is not None and self.max_users < self.users:
            raise ValueError(f"max_users ({self.max_users}) must be at least users ({self.users})")
        if self.script and self.arrival_rate_rps is not None:
            raise ValueError("with a script of your own, set the arrival rate in the script's options")
        return self

    @property
    def load_model(self) -> LoadModel:
        return "open" if self.arrival_rate_rps else "closed"

    def why_indivisible(self) -> str:
        return "a script of its own decides the load" if self.script else ""

    def files(self) -> dict[str, str]:
        """The script. The duration of the phase comes with the command."""
        return {SCRIPT_NAME: self.script or self._own_script()}

    def _own_script(self) -> str:
        asked = {
            "headers": self.headers,
            "method": self.method,
            "body": self.body,
            "timeout_s": self.timeout_s,
            "insecure": self.insecure,
            "keep_alive": self.keep_alive,
        }
        scenario: dict[str, object] = {"executor": "constant-vus", "vus": self.users}
        if self.arrival_rate_rps:
            scenario = {"executor": "constant-arrival-rate", "rate": self.arrival_rate_rps, "timeUnit": "1s"}
            scenario |= {"preAllocatedVUs": self.users, "maxVUs": self.max_users or self.users}
        scenario |= {"duration": "DURATION", "gracefulStop": f"{self.timeout_s}s"}
        options = json.dumps({**asked, "scenario": scenario}, indent=2)
        return _OWN_SCRIPT.replace("OPTIONS", options.replace('"DURATION"', '__ENV.BENCHHUB_DURATION_S + "s"'), 1)

    def command(self, target: Target, duration_s: float) -> Command:
        """The command line. PlanError when the duration is not whole seconds or the URL is not HTTP."""
        seconds = whole_seconds(self.kind, duration_s)
        argv = [self.binary, "run", "--quiet", "--no-usage-report", "--no-color"]
        argv += ["-e", f"BENCHHUB_URL={checked_url(target)}", "-e", f"BENCHHUB_DURATION_S={seconds}"]
        if self.script:
            argv += ["--vus", str(self.users), "--duration", f"{seconds}s"]
        return replace(script(_RUN, *argv, SCRIPT_NAME), timeout_s=seconds + self.timeout_s + MARGIN_S)

    def parse(self, output: str) -> LoadReport:
        report = self.read(output)
        if self.script:
            return report
        offered = None if self.arrival_rate_rps is None else float(self.arrival_rate_rps)
        # k6 leaves out a counter that never counted.
        errors = report.errors if report.errors.total else LoadErrors(0, 0, 0, 0, 0, 0)
        return replace(report, load_model=self.load_model, offered_rate_rps=offered, errors=errors)
