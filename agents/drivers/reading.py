"""Reading a load tool's output that comes from outside: a file, an upload."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from getopt import GetoptError, gnu_getopt
from pathlib import PurePosixPath

from agents.drivers import wrk, wrk2, wrk_csv
from agents.drivers.wrk_text import read_text
from agents.errors import ParseError
from agents.report import LoadReport

READERS: dict[str, Callable[[str], LoadReport]] = {
    "wrk": wrk.read,
    "wrk-text": lambda text: read_text(text, "wrk"),
    "wrk-lua-csv": wrk_csv.read_csv,
    "wrk2": wrk2.read,
    "wrk2-text": wrk2.read,
}
"""The kind of a driver (its format is then detected) or the name of a format -> what reads it."""

MAX_COMMAND_CHARS = 100_000

_SHORT = "c:d:s:t:H:T:R:B:LUv"
_LONG = ["connections=", "duration=", "threads=", "script=", "header=", "timeout=", "rate=", "batch_latency"]
_LONG += ["latency", "u_latency", "version"]
_AMOUNT = re.compile(r"([0-9]{1,12})([kMG]?)", re.ASCII | re.IGNORECASE)
_TIME = re.compile(r"([0-9]{1,9})([smh]?)", re.ASCII | re.IGNORECASE)
_TIMES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}
_S_PER = {"": 1, "s": 1, "m": 60, "h": 3600}


@dataclass(frozen=True)
class CommandLine:
    """What a command line of wrk or wrk2 says."""

    connections: int | None = None
    threads: int | None = None
    offered_rate_rps: float | None = None
    duration_s: float | None = None


def read_report(kind: str, text: str, command: str = "") -> LoadReport:
    """The report in `text`; what only the command line says is taken from `command`.

    Raises ParseError: unknown kind, not a whole report of that kind, or a command line that contradicts the report.
    """
    reader = READERS.get(kind)
    if reader is None:
        known = ", ".join(sorted(READERS))
        raise ParseError(f"there is no reader for '{kind[:60]}'", hint=f"Known kinds: {known}.")
    report = reader(text)
    if not command.strip():
        return report
    said = read_command(command)
    for name, printed, asked in (
        ("connections", report.connections, said.connections),
        ("threads", report.threads, said.threads),
    ):
        if printed is not None and asked is not None and printed != asked:
            raise ParseError(
                f"the report is of {printed} {name}, but the command line says {asked}",
                hint="Give the command line that printed this report.",
            )
    return replace(
        report,
        connections=said.connections if report.connections is None else report.connections,
        threads=said.threads if report.threads is None else report.threads,
        offered_rate_rps=said.offered_rate_rps if report.load_model == "open" else None,
        duration_nominal_s=said.duration_s if report.duration_nominal_s is None else report.duration_nominal_s,
    )


def read_command(command: str) -> CommandLine:
    """The options in a command line of wrk or wrk2; whatever stands before the tool's name is passed over.

    Raises ParseError when the quoting is broken or an option has a value that the tool would refuse.
    """
    if len(command) > MAX_COMMAND_CHARS:
        raise ParseError(f"the command line has more than {MAX_COMMAND_CHARS} characters")
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ParseError(f"the command line cannot be split into words: {error}", hint="Check its quotes.") from error
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
