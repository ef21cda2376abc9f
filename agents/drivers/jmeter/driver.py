"""JMeter without its window: users in a closed loop or requests on a schedule, and a result file with every request."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from agents.base.command import Command, script
from agents.base.errors import ParseError, PlanError
from agents.base.installed import installed_home, program
from agents.base.rights import Gate, Rights
from agents.drivers.base.command_line import CommandGrammar
from agents.drivers.base.driver import DerivedFile, Driver, Target
from agents.drivers.base.http_options import SENDS
from agents.drivers.jmeter import jmx as test_plan
from agents.drivers.jmeter.built_in_plan import RATES, TARGET, HttpPlan
from agents.drivers.jmeter.jmx_properties import property_of_plan
from agents.drivers.jmeter.jtl.files import CSV, XML, read_jtl_file, read_jtl_text
from agents.drivers.jmeter.jtl.splitting import split_csv
from agents.drivers.jmeter.text_reports import (
    LIVE,
    STATISTICS,
    SUMMARY,
    looks_like_csv,
    looks_like_statistics,
    looks_like_summary,
    looks_like_xml,
    read_statistics,
    read_summary,
)
from agents.formats.report_format import ReportFormat
from agents.results.report import LatencyBasis, LoadModel, LoadReport

PLAN_NAME = "plan.jmx"
RESULTS_NAME = "results.jtl"
SETTINGS_NAME = "benchhub.properties"

REPORT_NAME = "html-report.tar.gz"
REPORT_TIMEOUT_S = 600.0
_MAKE_REPORT = f"""
rm -rf html-report {REPORT_NAME}
nice -n 10 env "$1" "$2" -g {RESULTS_NAME} -o html-report -j report.log -q {SETTINGS_NAME} >report.out 2>&1 ||
  {{ tail -n 1 report.out >&2; exit 1; }}
[ -f html-report/index.html ] || {{ echo "JMeter made no report of these results" >&2; exit 1; }}
tar -czf {REPORT_NAME} html-report && rm -rf html-report
"""

_COLUMNS = [
    "time",
    "label",
    "response_code",
    "response_message",
    "thread_name",
    "data_type",
    "successful",
    "assertion_results_failure_message",
    "bytes",
    "sent_bytes",
    "thread_counts",
    "url",
    "latency",
    "idle_time",
    "connect_time",
    "subresults",
]
_SETTINGS = "\n".join(
    [
        "# What is saved of each request, whatever the installation says.",
        "jmeter.save.saveservice.output_format=csv",
        "jmeter.save.saveservice.default_delimiter=,",
        "jmeter.save.saveservice.timestamp_format=ms",
        "jmeter.save.saveservice.print_field_names=true",
        "jmeter.save.saveservice.response_data=false",
        *(f"jmeter.save.saveservice.{column}=true" for column in _COLUMNS),
        "# No port for shutdown messages.",
        "jmeterengine.nongui.port=0",
        "",
    ]
)
_PROPERTY = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]{0,199}", re.ASCII)
_PORT = re.compile(r":([A-Za-z0-9]+)$", re.ASCII)  # a workload's page has the word PORT in its place
_FIELD = re.compile(r"\{([a-z_]{1,40})\}")
_OURS = ("jmeter.save.saveservice.", "summariser.", "benchhub.", "jmeterengine.nongui", "log_level", "log_file")
_VERSION = re.compile(r"(?:^|\s|\\)(\d{1,3}\.\d{1,3}(?:\.\d{1,3})?(?:-SNAPSHOT)?)\s*$", re.ASCII | re.MULTILINE)
_HEAP = r"^[1-9][0-9]{0,5}[mMgG]$"


class Jmeter(HttpPlan, Driver):
    """JMeter 5.6. Its latency is the time to the last byte of the answer; users wait for it before they go on.

    `jmx` is a test plan as JMeter saved it; without one the requests above are made. A value of `properties` may hold
    {scheme} {host} {port} {path} {duration_s} {users} {ramp_up_s} {loops} {offered_rate_rps} {offered_rate_per_min},
    which are filled in for each phase.
    """

    formats: ClassVar[tuple[ReportFormat, ...]] = (
        ReportFormat(SUMMARY, looks_like_summary, read_summary),
        ReportFormat(CSV, looks_like_csv, read_jtl_text, read_jtl_file, split_csv),
        ReportFormat(XML, looks_like_xml, read_jtl_text, read_jtl_file),
        ReportFormat(STATISTICS, looks_like_statistics, read_statistics),
    )
    grammar: ClassVar[CommandGrammar | None] = None
    rate_option: ClassVar[str] = "offered_rate_rps"
    concurrency_option: ClassVar[str] = "users"
    divided: ClassVar[Mapping[str, str]] = {
        "users": "users",
        "warm_up_users": "users to warm up",
        "offered_rate_rps": "requests/s",
    }
    result_file: ClassVar[str] = RESULTS_NAME
    rights: ClassVar[Rights] = Rights(
        does=f"{SENDS}; an uploaded plan also to others",
        data=("requests", "heap_max", "heap_start"),
        gates={
            "home": installed_home("home"),
            "binary": program("jmeter", "jmeter.sh"),
            "jmx": Gate("a plan with scripts, files or what is not known", lambda tool: not tool.harm_of_plan()),
            "properties": Gate("properties of JMeter itself", lambda tool: not tool.own_properties()),
            "allow_shell": Gate("`allow_shell`", lambda tool: not tool.allow_shell),
        },
    )

    kind: Literal["jmeter"] = "jmeter"
    home: str = Field("", pattern=r"^(/[A-Za-z0-9_./+@-]{1,250})?$")
    """The directory of the installation; empty = `binary`."""
    binary: str = Field("jmeter", pattern=r"^[A-Za-z0-9_./][A-Za-z0-9_./+-]{0,200}$")
    jmx: str = Field("", max_length=test_plan.MAX_PLAN_CHARS)
    properties: dict[str, str | int | float | bool] = Field(default_factory=dict, max_length=200)
    heap_max: str = Field("1g", pattern=_HEAP)
    heap_start: str = Field("", pattern=rf"({_HEAP})|^$")
    summary_interval_s: int = Field(10, ge=6, le=3600)
    max_result_mb: int = Field(4096, ge=1, le=100_000)
    html_report: bool = Field(
        False, description="Also make JMeter's own HTML report when measuring is over, and keep it as an artifact."
    )
    allow_shell: bool = False
    """Accept a plan that runs programs or scripts on the driver host; saving it needs the role admin."""

    @field_validator("properties")
    @classmethod
    def _properties_are_plain(
        cls, properties: dict[str, str | int | float | bool]
    ) -> dict[str, str | int | float | bool]:
        for name, value in properties.items():
            if not _PROPERTY.fullmatch(name):
                raise ValueError(f"'{name[:100]}' is not the name of a property")
            if name.startswith(_OURS):
                raise ValueError(f"{name} is set by BenchHub, which reads the results")
            text = str(value)
            if len(text) > 4000 or re.search(r"[\x00-\x1f\x7f]|\$\{", text):
                raise ValueError(f"the value of {name} has a control character or ${{...}}, or is too long")
            if unknown := [field for field in _FIELD.findall(text) if field not in _FIELDS]:
                known = ", ".join(f"{{{field}}}" for field in _FIELDS)
                raise ValueError(f"the value of {name} has {{{unknown[0]}}}; there are {known}")
        return properties

    @model_validator(mode="after")
    def _plan_is_harmless(self) -> Jmeter:
        if not self.allow_shell:
            risky = self.own_properties()
            if risky:
                raise ValueError(
                    f"properties: {risky[0]} is read by JMeter itself and may load code; set allow_shell for that"
                )
        if self.jmx and self.offered_rate_rps and not self.tells_rate:
            raise ValueError(
                "offered_rate_rps: an uploaded plan offers a rate only when it is told to: give a property of it the "
                "value {offered_rate_rps} or {offered_rate_per_min}, and the plan a throughput timer that reads it"
            )
        if self.jmx:
            try:
                found = test_plan.harm(self.jmx)
            except PlanError as error:
                raise ValueError(f"jmx: {error.message} {error.hint}".strip()) from None
            if found and not self.allow_shell:
                raise ValueError(
                    f"jmx: the plan holds what can run programs or touch files on the driver host: {', '.join(found)}; "
                    "remove it, or set allow_shell, which needs the role admin"
                )
        return self

    def harm_of_plan(self) -> list[str]:
        """What the uploaded plan holds that may run programs or touch files on the driver host, in words."""
        return test_plan.harm(self.jmx) if self.jmx else []

    def own_properties(self) -> list[str]:
        """The given properties that JMeter itself reads, or that make a request to a file of a request to a server."""
        return [name for name, value in self.properties.items() if not property_of_plan(name, str(value))]

    def why_no_rate(self) -> str:
        if not self.jmx or self.tells_rate:
            return ""
        return "the uploaded plan cannot be told to offer a rate: none of its properties holds {offered_rate_rps}."

    def why_no_concurrency(self) -> str:
        if not self.jmx or self._tells_users:
            return ""
        return "the uploaded plan cannot be told how many users it has: none of its properties holds {users}."

    def why_indivisible(self) -> str:
        if not self.jmx or self._tells_users:
            return ""
        return "the users are in the uploaded plan; give them to it as a property with {users}"

    @property
    def _tells_users(self) -> bool:
        return any("{users}" in str(value) for value in self.properties.values())

    @property
    def tells_rate(self) -> bool:
        """Whether an uploaded plan is told the rate by one of its properties."""
        return any(f"{{{name}}}" in str(value) for value in self.properties.values() for name in RATES)

    @property
    def may_end_early(self) -> bool:
        return self.loops is not None or bool(self.jmx)

    @property
    def load_model(self) -> LoadModel:
        return "open" if self.offered_rate_rps else "closed"

    @property
    def latency_basis(self) -> LatencyBasis:
        """What a user waited for is all of a closed loop's latency; a schedule's requests may have been late before."""
        return "service_time" if self.offered_rate_rps else "response_time"

    @property
    def late_start_s(self) -> float:
        # Threads are made first, a user thinks first, and a schedule has gaps.
        gaps_s = 10 / self.offered_rate_rps if self.offered_rate_rps else 0.0
        return 3.0 + 2 * self.think_time_max_ms / 1000 + gaps_s

    @property
    def max_result_bytes(self) -> int:
        return self.max_result_mb << 20

    @property
    def program(self) -> str:
        return f"{self.home.rstrip('/')}/bin/jmeter" if self.home else self.binary

    def warming_up(self) -> Jmeter:
        return self.model_copy(update={"users": self.warm_up_users or self.users})

    def is_progress(self, line: str) -> bool:
        return LIVE.match(line) is not None

    def version_command(self) -> Command:
        missing = f"{self.program} is not there: unpack JMeter 5.6 on this host and set home to its directory"
        text = 'command -v "$1" >/dev/null || { echo "$2" >&2; exit 127; }\nexec "$1" -j /dev/null --version 2>&1'
        return script(text, self.program, missing, timeout_s=60)

    def parse_version(self, output: bytes) -> str:
        text = output.decode("utf-8", "replace")
        match = _VERSION.search(text)
        if not match or "Apache Software Foundation" not in text:
            raise ParseError(f"{self.program} does not say that it is JMeter: {text.strip()[-200:]}", line=1)
        return match[1]

    def files(self) -> dict[str, str]:
        fixed = {name: _shown(value) for name, value in self.properties.items() if not _is_filled_in(value)}
        given = "".join(f"{name}={_escaped(value)}\n" for name, value in fixed.items())
        return {PLAN_NAME: self.jmx or self.plan_text(), SETTINGS_NAME: _SETTINGS + given}

    def command(self, target: Target, duration_s: float) -> Command:
        """The command line. PlanError when the URL is not HTTP."""
        fields = self._fields(target, duration_s)
        heap = f"-Xms{self.heap_start or self.heap_max} -Xmx{self.heap_max}"
        argv = ["env", f"HEAP={heap}", self.program, "-n", "-t", PLAN_NAME, "-l", RESULTS_NAME, "-f"]
        argv += ["-j", "jmeter.log", "-q", SETTINGS_NAME]
        ours = {"summariser.interval": str(self.summary_interval_s)}
        ours |= {f"benchhub.{name}": fields[name] for name in TARGET}
        # Only what is filled in for each phase; the others, a password perhaps, are in a file: all see a command line.
        filled = {name: str(value) for name, value in self.properties.items() if _is_filled_in(value)}
        given = {name: _FIELD.sub(lambda match: fields[match[1]], value) for name, value in filled.items()}
        argv += [f"-J{name}={value}" for name, value in {**ours, **given}.items()]
        return Command(tuple(argv), timeout_s=duration_s + 120)

    def byproduct(self) -> DerivedFile | None:
        """The HTML report as an archive. It is bounded in time and has no more memory than the load had."""
        if not self.html_report:
            return None
        heap = f"HEAP=-Xms{self.heap_start or self.heap_max} -Xmx{self.heap_max}"
        made = script(_MAKE_REPORT, heap, self.program, timeout_s=REPORT_TIMEOUT_S)
        return DerivedFile(made, REPORT_NAME, "application/gzip")

    def parse(self, output: str) -> LoadReport:
        return self._complete(self.read(output))

    def parse_results(self, path: Path, printed: LoadReport, on_progress: Callable[[int, int], None]) -> LoadReport:
        report = read_jtl_file(path, on_progress)
        if printed.requests is not None and report.requests is not None and printed.requests != report.requests:
            note = f"the summariser counted {printed.requests:,} requests, the result file has {report.requests:,}"
            report = replace(report, notes=(*report.notes, note))
        if not printed.usable and printed.why and report.usable:
            report = replace(report, usable=False, why=printed.why)
        return self._complete(report)

    def _complete(self, report: LoadReport) -> LoadReport:
        if self.offered_rate_rps:
            rate_rps = float(self.offered_rate_rps)
            report = replace(report, load_model="open", latency_basis=self.latency_basis, offered_rate_rps=rate_rps)
        return replace(report, users=self.users) if not self.jmx and report.complete else report

    def _fields(self, target: Target, duration_s: float) -> dict[str, str]:
        url = urlsplit(target.url)
        if url.scheme not in ("http", "https") or not url.hostname or re.search(r"[\s\x00-\x1f]|\$\{", target.url):
            raise PlanError(f"'{target.url[:200]}' is not an http:// or https:// address")
        if duration_s < 1 or duration_s != int(duration_s):
            raise PlanError(f"JMeter runs for whole seconds, at least 1, not for {duration_s:g} s")
        given, path = _PORT.search(url.netloc), url.path or "/"
        return {
            "scheme": url.scheme,
            "host": url.hostname,
            "port": given[1] if given else {"https": "443"}.get(url.scheme, "80"),
            "path": f"{path}?{url.query}" if url.query else path,
            "duration_s": str(int(duration_s)),
            "users": str(self.users),
            "ramp_up_s": str(self.ramp_up_s),
            "loops": str(self.loops or -1),
            "offered_rate_rps": str(self.offered_rate_rps or 0),
            "offered_rate_per_min": str(60 * (self.offered_rate_rps or 0)),
        }


_FIELDS = (*TARGET, "users", "ramp_up_s", "loops", *RATES)


def _is_filled_in(value: str | float | bool) -> bool:
    return _FIELD.search(str(value)) is not None


def _escaped(value: str) -> str:
    """The value as a file of properties has it (java.util.Properties)."""
    units = value.replace("\\", "\\\\").encode("utf-16-be", "surrogatepass")
    codes = [int.from_bytes(units[at : at + 2]) for at in range(0, len(units), 2)]
    text = "".join(chr(code) if code < 0x7F else f"\\u{code:04x}" for code in codes)
    return "\\" + text if text[:1] == " " else text


def _shown(value: str | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
