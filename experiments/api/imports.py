"""Reports of tools that ran elsewhere."""

from __future__ import annotations

from django.http import HttpRequest
from ninja import Router
from ninja.responses import Status
from pydantic import AwareDatetime, Field

from agents.facts.described import COMMANDS, MAX_CHARS
from agents.readers.base.figure_kinds import Direction
from experiments.api.finding import find_run
from experiments.api.plumbing.auth import SEND, member_of
from experiments.api.plumbing.idempotency import idempotent
from experiments.api.shapes import Body, Labels, RunDetail
from experiments.asking.intake.imports import MAX_REPORT_CHARS, import_reports

router = Router(auth=SEND, tags=["imports"])


class ReportIn(Body):
    kind: str = Field(
        min_length=1,
        max_length=60,
        description="A load tool (wrk, k6, ...), a tool whose files of benchmarks are read (jmh, fio, ...), a format "
        "of one of them, or auto: by its content",
    )
    text: str = Field(max_length=MAX_REPORT_CHARS, description="What the tool wrote, byte for byte")
    command: str = Field("", max_length=100_000, description="Its command line; some figures stand only there")
    labels: Labels = {}
    application: str = Field("", max_length=120)
    recipe: str = Field("", max_length=120)
    workload: str = Field("", max_length=120)
    measured_at: AwareDatetime | None = None
    machine: str = Field(
        "",
        max_length=MAX_CHARS,
        description=f"The SUT, as `{COMMANDS}` prints it there, or part of it: its hardware profile",
    )

    split: bool = Field(
        False, description="A file to which several runs were appended becomes a run for each of them (JMeter, CSV)"
    )

    file_name: str = Field("", max_length=255, description="Some files say what they measured in their names only")
    directions: dict[str, Direction] = Field(
        {},
        max_length=100,
        description="Which is better of figures of which the file does not say it (Bencher Metric Format); * for all",
    )

    model_config = {"str_strip_whitespace": False}


class ImportedRun(RunDetail):
    """The run that came of a report; the first one of a file that holds several."""

    numbers: list[int] = Field(description="Of all runs that came of it")


@router.post("", response={201: ImportedRun})
@idempotent
def create_import(request: HttpRequest, payload: ReportIn) -> Status[ImportedRun]:
    """Read a report, or a file of benchmarks, and store what it holds as runs without execution, judged like any other.

    Each result of a file of benchmarks is a run, and so is each of its independent repetitions.
    """
    member = member_of(request)
    numbers = [run.number for run in import_reports(member, **payload.model_dump())]
    first = RunDetail.of(find_run(member, numbers[0]), member.team.slug)
    return Status(201, ImportedRun(**dict(first), numbers=numbers))
