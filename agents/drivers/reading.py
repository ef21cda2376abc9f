"""Reading a load tool's output that comes from outside: a file, an upload."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from agents.base.errors import ParseError
from agents.drivers import DRIVERS
from agents.drivers.base.command_line import CommandLine
from agents.drivers.base.driver import Driver
from agents.formats.importable import IMPORTABLE
from agents.formats.report_format import OnProgress, ReportFormat, form_of
from agents.results.contradictions import contradiction_in
from agents.results.report import LoadReport

REPORTING: Mapping[str, type[Driver]] = {kind: tool for kind, tool in DRIVERS.items() if tool.formats}
"""The load tools whose reports are read here; those of the others are files of results (`agents.readers`)."""

FORMATS: Mapping[str, ReportFormat] = {
    form.name: form for form in (*(form for tool in DRIVERS.values() for form in tool.formats), *IMPORTABLE.values())
}
"""Every importable form of report by its name."""

READERS: Mapping[str, Callable[[str], LoadReport]] = {
    **{kind: tool.read for kind, tool in REPORTING.items()},
    **{name: form.read for name, form in FORMATS.items()},
}
"""The kind of a driver (its format is then detected) or the name of a format -> what reads it."""

TOOL_OF: Mapping[str, type[Driver]] = {
    **REPORTING,
    **{form.name: tool for tool in DRIVERS.values() for form in tool.formats},
}
"""The kind of a driver, or the name of a format -> the driver."""

FILE_READERS: Mapping[str, Callable[[Path, OnProgress], LoadReport]] = {
    **{kind: form.read_file for kind, tool in DRIVERS.items() for form in tool.formats if form.read_file},
    **{name: form.read_file for name, form in FORMATS.items() if form.read_file},
}
"""What reads files of any size from the disk: it gets the path, and what to tell the bytes read and in all."""


def split_report(kind: str, text: str) -> Sequence[str]:
    """The texts of the runs that one text holds; itself when its form is always of one run, or nothing parts it.

    Raises ParseError: unknown kind, or a text that cannot be read as it.
    """
    if kind not in READERS:
        raise _no_reader(kind)
    tool = REPORTING.get(kind)
    form = form_of(tool.formats, text) if tool is not None else FORMATS[kind]
    return form.split(text) if form.split is not None else [text]


def read_report(kind: str, text: str, command: str = "") -> LoadReport:
    """The report in `text`; what only the command line says is taken from `command`.

    Raises ParseError: unknown kind, not a whole report of that kind, or a command line that contradicts the report.
    """
    reader = READERS.get(kind)
    if reader is None:
        raise _no_reader(kind)
    if (given := TOOL_OF.get(kind)) is not None and (behind := given.kind_behind(text, command)) in REPORTING:
        reader = READERS[kind if REPORTING[behind] is given else behind]
    report = reader(text)
    if (why := contradiction_in(report)) is not None and report.complete:
        raise ParseError(why, hint="Give the report as the tool wrote it.")
    tool = DRIVERS.get(report.tool)
    if not command.strip() or tool is None or tool.grammar is None:
        return report
    said = tool.grammar.read(command)
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


def report_kinds(text: str) -> list[str]:
    """The load tools of which the text is a whole report, by reading it as each; wrk and wrk2 may look the same.

    Figures of a team's own are left out: any object of numbers is like them.
    """
    found = set()
    for kind in REPORTING.keys() - {"command"}:
        try:
            report = read_report(kind, text)
        except ParseError:
            continue
        if report.complete:
            found.add(report.tool)
    return sorted(found)


def _no_reader(kind: str) -> ParseError:
    known = ", ".join(sorted(READERS))
    return ParseError(f"there is no reader for '{kind[:60]}'", hint=f"Known kinds: {known}.")


def _with_schedule(report: LoadReport, said: CommandLine) -> LoadReport:
    """The report of a tool that follows a schedule when it is given a rate, and says so nowhere in its report."""
    if said.offered_rate_rps is None or report.load_model == "open":
        return report
    from_due_time = bool(said.offered_rate_rps) and said.corrected
    return replace(report, load_model="open", latency_basis="response_time" if from_due_time else "service_time")


def _offered(report: LoadReport, said: CommandLine) -> float | None:
    if report.load_model != "open":
        return None
    return said.offered_rate_rps if report.offered_rate_rps is None else report.offered_rate_rps
