"""The load phases: a tool for each instance of the server, all at the same time, and one report of them together."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Sequence
from typing import TypeVar

from agents.errors import CommandError
from agents.events import LoadPart, LoadReported, LoadStarted
from agents.merging import merge
from agents.monitors import MONITORS
from agents.reach import raise_first
from agents.report import LoadReport
from agents.spec import Phase
from agents.spectrum import spectrum_of
from agents.tool_job import LoadSite, Piece, ToolJob
from agents.watch import Watch

Result = TypeVar("Result")


class Loading:
    """Load on the SUT from the driver host. Safe to call again: a phase that has its report is passed by."""

    def __init__(self, site: LoadSite) -> None:
        self._site = site

    async def run_phase(self, index: int, phase: Phase) -> None:
        """Put load on the SUT for one phase, or go on following one that another worker started.

        CommandError when a tool did not run to its end, or printed no report in the measured phase.
        """
        if (known := self._site.record.reports.get(index)) is not None:
            self._insist(known)
            return
        tools = [
            ToolJob(self._site, index=index, number=number, url=url) for number, url in enumerate(self._site.spec.urls)
        ]
        ages_s = await _all([tool.start() for tool in tools])
        if index not in self._site.record.loads:
            at_unix_s = time.time() - max(ages_s)
            await self._site.emit(LoadStarted(index, phase.kind == "measure", phase.duration_s, at_unix_s))
        async with Watch(
            self._site.driver,
            "driver",
            tuple(MONITORS.values()),
            self._site.emit,
            pids=[pid for tool in tools if (pid := self._site.record.started_jobs[tool.name].pid) is not None],
            interval_s=self._site.spec.monitor_interval_s,
            cpus=self._site.spec.workload.cpus,
        ):
            statuses = await _all([tool.follow(age_s) for tool, age_s in zip(tools, ages_s, strict=True)])
        pieces = [await tool.collect(status) for tool, status in zip(tools, statuses, strict=True)]
        reported = _reported(index, phase, pieces)
        await self._site.emit(reported)
        self._insist(reported)

    def _insist(self, reported: LoadReported) -> None:
        if not reported.report["complete"]:
            kind, error = self._site.spec.workload.driver.kind, reported.report.get("error")
            raise CommandError(f"{kind} did not run: {error}", hint="See its output under Artifacts.")


async def _all(work: Sequence[Awaitable[Result]]) -> list[Result]:
    """The results of all of it, at the same time; the first failure counts when all have ended."""
    found = await asyncio.gather(*work, return_exceptions=True)
    raise_first(found)
    return [result for result in found if not isinstance(result, BaseException)]


def _reported(index: int, phase: Phase, pieces: Sequence[Piece]) -> LoadReported:
    """The report of one phase: that of the only tool, or what several add up to, with their own beside it."""
    report = _together([piece.report for piece in pieces])
    output = pieces[0].output
    if len(pieces) > 1:
        output = b"".join(b"== " + piece.url.encode() + b"\n" + piece.output for piece in pieces)
    return LoadReported(
        index,
        phase.kind == "measure",
        next((piece.exit_status for piece in pieces if piece.exit_status != 0), 0),
        output.decode("utf-8", "replace"),
        hashlib.sha256(output).hexdigest(),
        report.to_json(),
        pieces[0].result_file if len(pieces) == 1 else None,
        spectrum_of(report),
        tuple(
            LoadPart(piece.url, piece.exit_status, piece.report.to_json(), piece.result_file)
            for piece in pieces
            if len(pieces) > 1
        ),
    )


def _together(reports: Sequence[LoadReport]) -> LoadReport:
    """What the reports add up to. One that is not whole stands for all: without it nothing adds up."""
    return next((report for report in reports if not report.complete), None) or merge(reports)
