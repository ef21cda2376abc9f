"""The door for what tools wrote elsewhere: a report, or a file of benchmarks, becomes runs without execution."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from agents.base.errors import ParseError
from agents.drivers.reading import READERS, read_report, report_kinds, split_report
from agents.readers import RESULT_READERS
from agents.readers.base.figure_kinds import Direction
from agents.readers.reading import RESULT_FORMS, guesses, is_result_kind, read_results
from agents.results.report import LoadReport
from experiments.asking.intake.finished_result import FinishedResult, History
from experiments.asking.intake.finished_runs import store_runs
from experiments.asking.intake.named_results import NamedRun, named_runs
from experiments.models import Member, Role, Run
from experiments.registry.errors import RequestError
from experiments.registry.metrics.vocabulary import METRICS
from experiments.registry.teams.access import require

MAX_REPORT_CHARS = 5_000_000
AUTO = "auto"
"""The kind of a text that is to be known by its content."""
BENCHMARK, IMPORT = "benchmark", "import"
"""Labels of runs that came of a file of benchmarks: which one it is, and what came of the same file."""


@dataclass(frozen=True)
class Given:
    """What was given beside the text, the same for every run that comes of it."""

    application: str = ""
    recipe: str = ""
    workload: str = ""
    measured_at: datetime | None = None
    machine: str = ""


def import_reports(
    member: Member,
    *,
    kind: str,
    text: str,
    command: str = "",
    labels: Mapping[str, str] | None = None,
    application: str = "",
    recipe: str = "",
    workload: str = "",
    measured_at: datetime | None = None,
    machine: str = "",
    split: bool = False,
    file_name: str = "",
    directions: Mapping[str, Direction] | None = None,
) -> list[Run]:
    """Store a report as a finished run, with `split` each run that its text holds, or each result of a file of
    benchmarks: all of them, or none.

    Names refer to the newest versions of the team's documents. `machine` describes the SUT by what
    `agents.facts.described.COMMANDS` printed there; its hardware is part of the run's fingerprint. `kind` is a tool, a
    form of its files, or `auto`. `directions` says of figures whether more or less is better where the file does not;
    some files say what they measured in their names only (`file_name`). What a text cannot be read as is a RequestError
    (`text`, `kind`, `command`, `machine`, `directions`). A tool that did not run at all is stored as a failed run, with
    the tool's own message.
    """
    require(member, Role.LAUNCHER)  # before megabytes are read
    _check_size(text)
    kind = kind_of(text) if kind == AUTO else kind
    given = Given(application, recipe, workload, measured_at, machine)
    if not is_result_kind(kind) and kind not in READERS:
        known = ", ".join([AUTO, *sorted({*READERS, *RESULT_READERS})])
        raise RequestError(f"There is no reader for {kind[:60]!r}. Known kinds: {known}.", field="kind")
    if is_result_kind(kind):
        if command.strip():
            raise RequestError(
                "A file of benchmarks says all of it; leave the command line, which is for load tools, empty.",
                field="command",
            )
        runs = read_named(kind, text, file_name, directions or {})
        results = _named_results(runs, text, given, labels or {})
    else:
        results = [_result(_read(kind, part, command), part, given, labels or {}) for part in _parts(kind, text, split)]
    said = {"kind": kind, "labels": dict(labels or {})}
    return store_runs(member, results, action="run.import", said=said)


def kind_of(text: str) -> str:
    """The form or tool that the text is of, by its content. RequestError names what it may be, or what is read."""
    _check_size(text)
    found = [guess.form for guess in guesses(text)] or report_kinds(text)
    if len(found) == 1:
        return found[0]
    if found:
        raise RequestError(f"This may be of {' or '.join(found)}: name the one that it is.", field="kind")
    forms = ", ".join(sorted(RESULT_FORMS))
    raise RequestError(f"No report of a load tool and no form of a file is like this. Forms: {forms}.", field="kind")


@dataclass(frozen=True)
class Preview:
    """What would be stored of a text: its kind, whose form it is, how many runs, and those that are one result."""

    kind: str
    title: str
    count: int
    results: tuple[NamedRun, ...]


def preview_of(text: str, file_name: str, directions: Mapping[str, Direction]) -> Preview:
    """What a text would become that is known by its content. RequestError: `kind` by `kind_of`, or by `read_named`.

    Of a load tool's report there is one result, whose figure is its throughput.
    """
    form = kind_of(text)
    if form not in RESULT_FORMS:
        report = _read(form, text, "")
        return Preview(form, form, 1, (NamedRun(report.url or "", {}, (), report, "throughput_rps"),))
    reader = RESULT_FORMS[form][0]
    runs = read_named(form, text, file_name, directions)
    return Preview(reader.kind, reader.title, len(runs), tuple(run for run in runs if run.repetition == 1))


def read_named(kind: str, text: str, file_name: str, directions: Mapping[str, Direction]) -> list[NamedRun]:
    """The runs that a file of benchmarks becomes, not stored; see `import_reports`."""
    _check_size(text)
    reader = RESULT_FORMS[kind][0] if kind in RESULT_FORMS else RESULT_READERS[kind]
    try:
        readout = read_results(kind, text, file_name)
    except ParseError as error:
        raise _refused(error) from error
    return named_runs(readout, reader.headline, directions)


def _named_results(
    runs: Sequence[NamedRun], text: str, given: Given, labels: Mapping[str, str]
) -> list[FinishedResult]:
    """One result for each run. The file is kept with the first, which the others name by what they share."""
    shared = {IMPORT: secrets.token_hex(6), **labels}
    results = []
    for number, run in enumerate(runs):
        report = run.report
        part = " ".join([run.benchmark, *(f"{name}={value}" for name, value in run.params.items())]).strip()
        own = ({BENCHMARK: run.benchmark} if run.benchmark else {}) | shared
        if run.repetitions > 1:
            own = {"repetition": f"{run.repetition} of {run.repetitions}"} | own
        results.append(
            FinishedResult(
                report=report,
                history=History("imported", (report.tool, *run.identity), title="imported", part=part),
                output_seen=True,
                output=(f"{report.format}.txt", text) if number == 0 else None,
                follow=run.headline,
                figures=run.beside,
                application=given.application,
                recipe=given.recipe,
                workload=given.workload,
                machine=given.machine,
                measured_at=given.measured_at,
                labels=own,
                parameters=run.params,
            )
        )
    return results


def _result(report: LoadReport, text: str, given: Given, labels: Mapping[str, str]) -> FinishedResult:
    return FinishedResult(
        report=report,
        history=_history(report),
        output_seen=True,
        output=(f"{report.format}.txt", text),
        application=given.application,
        recipe=given.recipe,
        workload=given.workload,
        machine=given.machine,
        measured_at=given.measured_at,
        labels=labels,
    )


def _check_size(text: str) -> None:
    if not text.strip():
        raise RequestError("The report is empty.", field="text")
    if len(text) > MAX_REPORT_CHARS:
        raise RequestError(f"A report has at most {MAX_REPORT_CHARS:,} characters.", field="text")


def _parts(kind: str, text: str, split: bool) -> Sequence[str]:
    if not split:
        return [text]
    try:
        return split_report(kind, text)
    except ParseError as error:
        raise _refused(error) from error


def _read(kind: str, text: str, command: str) -> LoadReport:
    _check_size(text)
    try:
        report = read_report(kind, text, command)
    except ParseError as error:
        raise _refused(error) from error
    if (known := next((own.name for own in report.own_metrics if own.name in METRICS), None)) is not None:
        raise RequestError(f"{known!r} is known to BenchHub; give your figure another name.", field="text")
    return report


def _refused(error: ParseError) -> RequestError:
    line = f" (line {error.line})" if error.line is not None else ""
    hint = f" {error.hint}" if error.hint else ""
    field = "kind" if "no reader" in error.message else "command" if "command line" in error.message else "text"
    return RequestError(f"{error.message}{line}.{hint}", field=field)


def _history(report: LoadReport) -> History:
    """Imported runs of one application, workload, tool, load and machine form a series, apart from executed ones."""
    load = (report.connections, report.threads, report.offered_rate_rps)
    shared = (report.tool, report.latency_basis, *map(str, load))
    return History("imported", shared, title="imported", url=report.url or "")
