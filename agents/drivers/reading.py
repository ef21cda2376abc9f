"""Reading a load tool's output that comes from outside: a file, an upload."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from getopt import GetoptError, gnu_getopt
from pathlib import Path, PurePosixPath

from agents.base.errors import ParseError
from agents.drivers.ab import text_report as ab_text
from agents.drivers.autocannon import json_report as autocannon_json
from agents.drivers.base.command_line import GRAMMARS, CommandLine, read_command_of, words_of
from agents.drivers.command import figures
from agents.drivers.h2load import text_report as h2load_text
from agents.drivers.hey import text_report as hey_text
from agents.drivers.hyperfoil import driver as hyperfoil
from agents.drivers.hyperfoil import json_report as hyperfoil_json
from agents.drivers.hyperfoil import text_report as hyperfoil_text
from agents.drivers.jmeter import driver as jmeter
from agents.drivers.jmeter.jtl.files import read_jtl_file, read_jtl_text
from agents.drivers.jmeter.text_reports import read_statistics, read_summary
from agents.drivers.k6 import driver as k6
from agents.drivers.k6 import json_report as k6_json
from agents.drivers.k6 import text_report as k6_text
from agents.drivers.oha import reports as oha_reports
from agents.drivers.siege import reports as siege_reports
from agents.drivers.vegeta import json_report as vegeta_json
from agents.drivers.wrk import csv_summary, wrk, wrk2
from agents.formats import hdr_log
from agents.results.report import LoadReport

READERS: dict[str, Callable[[str], LoadReport]] = {
    "ab": ab_text.read_text,
    "ab-text": ab_text.read_text,
    "autocannon": autocannon_json.read_json,
    "autocannon-json": autocannon_json.read_json,
    "command": figures.read_json,
    "figures-json": figures.read_json,
    "h2load": h2load_text.read_text,
    "h2load-text": h2load_text.read_text,
    "hdr-log": hdr_log.read_text,
    "hey": hey_text.read_text,
    "hey-text": hey_text.read_text,
    "hyperfoil": hyperfoil.read,
    "hyperfoil-json": hyperfoil_json.read_json,
    "hyperfoil-wrk-text": hyperfoil_text.read_text,
    "jmeter": jmeter.read,
    "jmeter-dashboard-statistics": read_statistics,
    "jmeter-jtl-csv": read_jtl_text,
    "jmeter-jtl-xml": read_jtl_text,
    "jmeter-summariser": read_summary,
    "k6": k6.read,
    "k6-summary": k6_json.read_json,
    "k6-summary-export": k6_json.read_json,
    "k6-text": k6_text.read_text,
    "oha": oha_reports.read,
    "oha-json": oha_reports.read_json,
    "oha-text": oha_reports.read_text,
    "siege": siege_reports.read,
    "siege-json": siege_reports.read_json,
    "siege-text": siege_reports.read_text,
    "vegeta": vegeta_json.read_json,
    "vegeta-json": vegeta_json.read_json,
    "wrk": wrk.read,
    "wrk-text": wrk.read_printed,
    "wrk-lua-csv": csv_summary.read_csv,
    "wrk2": wrk2.read,
    "wrk2-text": wrk2.read,
}
"""The kind of a driver (its format is then detected) or the name of a format -> what reads it."""

FILE_READERS: dict[str, Callable[[Path, Callable[[int, int], None]], LoadReport]] = {
    "jmeter": read_jtl_file,
    "jmeter-jtl-csv": read_jtl_file,
    "jmeter-jtl-xml": read_jtl_file,
}
"""What reads files of any size from the disk: it gets the path, and what to tell the bytes read and in all."""

_SHORT = "c:d:s:t:H:T:R:B:LUv"
_LONG = ["connections=", "duration=", "threads=", "script=", "header=", "timeout=", "rate=", "batch_latency"]
_LONG += ["latency", "u_latency", "version"]
_AMOUNT = re.compile(r"([0-9]{1,12})([kMG]?)", re.ASCII | re.IGNORECASE)
_TIME = re.compile(r"([0-9]{1,9})([smh]?)", re.ASCII | re.IGNORECASE)
_TIMES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}
_S_PER = {"": 1, "s": 1, "m": 60, "h": 3600}


def read_report(kind: str, text: str, command: str = "") -> LoadReport:
    """The report in `text`; what only the command line says is taken from `command`.

    Raises ParseError: unknown kind, not a whole report of that kind, or a command line that contradicts the report.
    """
    reader = READERS.get(kind)
    if reader is None:
        known = ", ".join(sorted(READERS))
        raise ParseError(f"there is no reader for '{kind[:60]}'", hint=f"Known kinds: {known}.")
    report = reader(text)
    if not command.strip() or report.tool not in ("wrk", "wrk2", *GRAMMARS):
        return report
    said = read_command_of(report.tool, command) if report.tool in GRAMMARS else read_command(command)
    for name, printed, asked in (
        ("connections", report.connections, said.connections),
        ("threads", report.threads, said.threads),
    ):
        if printed is not None and asked is not None and printed != asked:
            raise ParseError(
                f"the report is of {printed} {name}, but the command line says {asked}",
                hint="Give the command line that printed this report.",
            )
    report = _with_schedule(report, said)
    return replace(
        report,
        connections=said.connections if report.connections is None else report.connections,
        threads=said.threads if report.threads is None else report.threads,
        offered_rate_rps=_offered(report, said),
        duration_nominal_s=said.duration_s if report.duration_nominal_s is None else report.duration_nominal_s,
    )


def _with_schedule(report: LoadReport, said: CommandLine) -> LoadReport:
    """The report of a tool that follows a schedule when it is given a rate, and says so nowhere in its report."""
    grammar = GRAMMARS.get(report.tool)
    if grammar is None or said.offered_rate_rps is None or report.load_model == "open":
        return report
    return replace(report, load_model="open", latency_basis=grammar.basis(said))


def _offered(report: LoadReport, said: CommandLine) -> float | None:
    if report.load_model != "open":
        return None
    return said.offered_rate_rps if report.offered_rate_rps is None else report.offered_rate_rps


def read_command(command: str) -> CommandLine:
    """The options in a command line of wrk or wrk2; whatever stands before the tool's name is passed over.

    Raises ParseError when the quoting is broken or an option has a value that the tool would refuse.
    """
    words = words_of(command)
    names = [i for i, word in enumerate(words) if PurePosixPath(word).name in ("wrk", "wrk2")]
    try:
        options, _ = gnu_getopt(words[names[0] + 1 :] if names else words, _SHORT, _LONG)
    except GetoptError as error:
        raise ParseError(f"the command line of the tool cannot be read: {error}") from error
    connections = threads = rate = duration = None
    for option, value in options:
        if option in ("-c", "--connections"):
            connections = _scaled(option, value, _AMOUNT, _TIMES)
        elif option in ("-t", "--threads"):
            threads = _scaled(option, value, _AMOUNT, _TIMES)
        elif option in ("-R", "--rate"):
            rate = float(_scaled(option, value, _AMOUNT, _TIMES))
        elif option in ("-d", "--duration"):
            duration = float(_scaled(option, value, _TIME, _S_PER))
    return CommandLine(connections, threads, rate, duration)


def _scaled(option: str, value: str, pattern: re.Pattern[str], units: dict[str, int]) -> int:
    match = pattern.fullmatch(value)
    if not match:
        raise ParseError(f"'{value[:60]}' is not a value for {option} in the command line")
    return int(match[1]) * units[match[2].lower()]
