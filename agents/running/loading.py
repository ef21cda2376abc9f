"""The load phases: on each driver host a tool for each instance of the server, all begun together, and one report."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Sequence
from contextlib import AsyncExitStack
from typing import TypeVar

from agents.base.clock import run_clock_s
from agents.base.command import failure
from agents.events import LoadPart, LoadReported, LoadStarted
from agents.monitors import MONITORS
from agents.results.contradictions import without_contradiction
from agents.results.merging import merge
from agents.results.report import LoadReport
from agents.results.spectrum import spectrum_of
from agents.running.common_start import LEAD_S, read_clock, spread_s
from agents.running.host_links import raise_first
from agents.running.monitoring import Monitoring
from agents.running.tool_job import LoadSite, Piece, ToolJob
from agents.spec import Phase

Result = TypeVar("Result")


class Loading:
    """Load on the SUT from all driver hosts. Safe to call again: a phase that has its report is passed by."""

    def __init__(self, sites: Sequence[LoadSite]) -> None:
        self._sites = tuple(sites)
        self._site = sites[0]

    async def run_phase(self, index: int, phase: Phase) -> None:
        """Put load on the SUT for one phase, or go on following one that another worker started.

        CommandError when a tool did not run to its end, or printed no report in the measured phase.
        """
        if (known := self._site.record.reports.get(index)) is not None:
            self._insist(known)
            return
        urls = self._site.spec.urls
        tools = [
            ToolJob(site, index=index, number=place * len(urls) + number, url=url)
            for place, site in enumerate(self._sites)
            for number, url in enumerate(urls)
        ]
        await _all([tool.prepare() for tool in tools])
        await self._intend(tools)
        ages_s = await _all([tool.start() for tool in tools])
        if index not in self._site.record.loads:
            at_unix_s = run_clock_s() - max(ages_s)
            await self._site.emit(LoadStarted(index, phase.kind == "measure", phase.duration_s, at_unix_s))
        async with AsyncExitStack() as watches:
            for site in self._sites:
                await watches.enter_async_context(self._watch(site, [tool for tool in tools if tool.role == site.role]))
            statuses = await _all([tool.follow(age_s) for tool, age_s in zip(tools, ages_s, strict=True)])
        pieces = [await tool.collect(status) for tool, status in zip(tools, statuses, strict=True)]
        reported = self._reported(index, phase, pieces)
        await self._site.emit(reported)
        self._insist(reported)

    async def _intend(self, tools: Sequence[ToolJob]) -> None:
        """Write down what will be started, several tools for one moment on the clock of each host.

        Anew when a worker died over it: no tool is started before all of them are written down.
        """
        if all(tool.name in self._site.record.jobs for tool in tools):
            return
        if len(tools) == 1:
            await tools[0].intend()
            return
        clocks = dict(
            zip(
                (site.role for site in self._sites),
                await _all([read_clock(site.driver) for site in self._sites]),
                strict=True,
            )
        )
        begins_s = time.monotonic() + LEAD_S
        for tool in tools:
            await tool.intend(clocks[tool.role], begins_s)

    def _watch(self, site: LoadSite, tools: Sequence[ToolJob]) -> Monitoring:
        started = [site.record.started_jobs[tool.name].pid for tool in tools]
        return Monitoring(
            site.driver,
            site.role,
            tuple(MONITORS.values()),
            site.emit,
            pids=[pid for pid in started if pid is not None],
            interval_s=site.spec.monitor_interval_s,
            cpus=site.spec.workload.cpus,
        )

    def _insist(self, reported: LoadReported) -> None:
        if not reported.report["complete"]:
            kind, error = self._site.spec.workload.driver.kind, reported.report.get("error")
            failed = failure(f"{kind} did not run: {error}", reported.exit_status, by_author=True)
            failed.hint = f"{failed.hint} See its output under Artifacts.".strip()
            raise failed

    def _ahead_s(self, pieces: Sequence[Piece]) -> list[float]:
        """By how much the clock of each tool's host is ahead of that of the first's; an unknown one counts as right."""
        clocks_s = [self._site.record.facts[piece.role].clock_midpoint_s or 0.0 for piece in pieces]
        return [clock_s - clocks_s[0] for clock_s in clocks_s]

    def _reported(self, index: int, phase: Phase, pieces: Sequence[Piece]) -> LoadReported:
        """The report of one phase: that of the only tool, or what several add up to, with their own beside it."""
        report = without_contradiction(_together([piece.report for piece in pieces], self._ahead_s(pieces)))
        output = pieces[0].output
        parts: tuple[LoadPart, ...] = ()
        if len(pieces) > 1:
            hosts = self._site.spec.hosts
            output = b"".join(f"== {hosts[piece.role].name}: {piece.url}\n".encode() + piece.output for piece in pieces)
            parts = tuple(_part(piece) for piece in pieces)
        return LoadReported(
            index,
            phase.kind == "measure",
            next((piece.exit_status for piece in pieces if piece.exit_status != 0), 0),
            output.decode("utf-8", "replace"),
            hashlib.sha256(output).hexdigest(),
            report.to_json(),
            pieces[0].result_file if len(pieces) == 1 else None,
            spectrum_of(report),
            parts,
            spread_s(parts),
        )


async def _all(work: Sequence[Awaitable[Result]]) -> list[Result]:
    """The results of all of it, at the same time; the first failure counts when all have ended."""
    found = await asyncio.gather(*work, return_exceptions=True)
    raise_first(found)
    return [result for result in found if not isinstance(result, BaseException)]


def _part(piece: Piece) -> LoadPart:
    report = piece.report.to_json()
    return LoadPart(
        piece.url, piece.exit_status, report, piece.result_file, piece.role, piece.late_s, piece.clock_error_s
    )


def _together(reports: Sequence[LoadReport], ahead_s: Sequence[float]) -> LoadReport:
    """What the reports add up to. One that is not whole stands for all: without it nothing adds up."""
    return next((report for report in reports if not report.complete), None) or merge(reports, ahead_s)
