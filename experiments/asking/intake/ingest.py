"""The door for results that programs send: one or many, all of them or none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agents.drivers.command.figures import FORMAT
from agents.results.report import LoadReport
from experiments.asking.intake.finished_result import FinishedResult, History
from experiments.asking.intake.finished_runs import placed, store_runs
from experiments.asking.intake.sent_results import SentResult, figures_text, read_figures
from experiments.models import Member, Run
from experiments.registry.errors import RequestError

MAX_RESULTS = 100


def store_results(member: Member, results: Sequence[SentResult]) -> list[Run]:
    """Store finished runs for what others measured, in the order given; all of them, or none when one is wrong.

    A RequestError names the field, of several results with the place of the result in front.
    """
    if not 1 <= len(results) <= MAX_RESULTS:
        raise RequestError(f"Send 1 to {MAX_RESULTS} results at once.", field="results")
    finished = []
    for place, result in enumerate(results):
        with placed(place, len(results)):
            finished.append(_finished(result))
    said = {"runs": len(results), "tools": sorted({one.tool for one in results})}
    return store_runs(member, finished, action="run.report", said=said)


def _finished(result: SentResult) -> FinishedResult:
    found = FinishedResult(
        report=LoadReport(result.tool, FORMAT, result.load_model, result.latency_basis),
        history=_history(result),
        output_seen=False,
        application=result.application,
        recipe=result.recipe,
        workload=result.workload,
        machine=result.machine,
        measured_at=result.measured_at,
        labels=result.labels,
        tags=result.tags,
        notes=result.notes,
        parameters=result.parameters,
        series=result.series,
    )
    if result.failure:
        if result.metrics or result.own_metrics:
            raise RequestError("A run that failed has no figures; leave out its failure, or them.", field="metrics")
        return replace(found, report=replace(found.report, complete=False, error=result.failure))
    report, beside = read_figures(result)
    return replace(found, report=report, figures=beside, output=(f"{FORMAT}.txt", figures_text(result)))


def _history(result: SentResult) -> History | None:
    if not (result.history or result.application or result.workload):
        return None
    shared = (result.history, result.tool, result.latency_basis)
    return History("reported", shared, title=result.history or "reported")
