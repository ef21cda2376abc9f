"""Searches for the sustainable rate: what came of a trial, and which rate is tried next."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast

from django.db import transaction

from agents.base.errors import PlanError
from agents.drivers.rates import rate_step_rps
from agents.spec import WorkloadDocument
from experiments.analysis.search import (
    DEFAULT_WIDTH_RATIO,
    Decision,
    Found,
    NotFound,
    SearchSettings,
    Trial,
    TrialResult,
    TryRate,
    decide,
)
from experiments.analysis.search_limit import COVERAGE
from experiments.analysis.search_trial import Judgement, TrialFigures, judge_trial
from experiments.asking.inquiries.engine import End, Inquiries, State
from experiments.asking.launching.cancelling import cancel_run
from experiments.asking.launching.choices import Choice
from experiments.asking.launching.launch import launch_run
from experiments.asking.searches.reading import latency_name, objective_text
from experiments.models import CapacitySearch, Member, Run, SearchTrial
from experiments.registry.documents.contents import content_of
from experiments.registry.errors import RequestError
from experiments.registry.events import RunEnded
from experiments.registry.hosts.driver_sets import driver_set
from experiments.registry.metrics.vocabulary import METRICS
from experiments.registry.notes.labels import check_labels

OBJECTIVES = tuple(name for name in METRICS if name.startswith("latency_"))
LARGEST_RPS = 1e9
_PERCENTILE = re.compile(r"latency_p([0-9.]+)_ms")
_DRIVER_CHECKS = frozenset({"driver_cpu"})
_OF_THE_SERVER = frozenset({"errors", "connect_errors", "offered_rate"})
"""Checks that make a run invalid, but say something about the server: the trial failed."""


class RateSearches(Inquiries[CapacitySearch, SearchTrial, Run, TryRate]):
    """Each trial is a run at a rate of its own."""

    model = CapacitySearch
    word, title, step_word = "search", "rate search", "trial"

    def told(self, inquiry: CapacitySearch) -> dict[str, object]:
        return {"objective_ms": inquiry.objective_ms}

    def decide(self, inquiry: CapacitySearch) -> TryRate | End:
        step = next_step(inquiry)
        if isinstance(step, Found):
            inquiry.low_rps, inquiry.high_rps, inquiry.coverage_ratio = step.low_rps, step.high_rps, COVERAGE
            return End(State.FINISHED, _answer(inquiry, step))
        if isinstance(step, NotFound):
            last = inquiry.trials.exclude(reason="").last()
            return End(State.STOPPED, f"{step.sentence} The last trial: {last.reason if last else '-'}")
        return step

    def launch(self, member: Member, inquiry: CapacitySearch, following: TryRate) -> None:
        rate_rps = following.rate_rps
        labels = {**self.labels_of(inquiry), "offered_rate_rps": f"{rate_rps:g}"}
        run = launch_run(member, _choice_at(inquiry, rate_rps), labels=labels, priority=inquiry.priority)
        inquiry.trials.create(position=inquiry.trials.count(), rate_rps=rate_rps, phase=following.phase, run=run)

    def open_step(self, launched: Run) -> SearchTrial | None:
        return SearchTrial.objects.filter(run_id=launched.pk, result=SearchTrial.Result.NONE).first()

    def inquiry_id(self, step: SearchTrial) -> int:
        return step.search_id

    def step_name(self, step: SearchTrial, launched: Run) -> str:
        return f"run #{launched.number}"

    def judge(self, inquiry: CapacitySearch, step: SearchTrial, launched: Run) -> End | None:
        judgement = _judged(inquiry, step, launched)
        step.result, step.reason = SearchTrial.Result(judgement.result), judgement.reason
        step.save(update_fields=["result", "reason"])
        return None if judgement.can_repeat else End(State.STOPPED, judgement.reason)

    def why_cancelled(self, step: SearchTrial, launched: Run) -> str:
        return f"Its trial #{launched.number} was cancelled." if launched.outcome == Run.Outcome.CANCELLED else ""

    def hold_open_step(self, inquiry: CapacitySearch) -> SearchTrial | None:
        step = inquiry.trials.filter(result=SearchTrial.Result.NONE).last()
        if step is not None:
            step.run = Run.objects.select_for_update(of=("self",)).get(pk=step.run_id)
        return step

    def cancel_step(self, member: Member, step: SearchTrial) -> None:
        if step.run.is_live:
            cancel_run(member, step.run)


SEARCHES = RateSearches()


def run_ended(event: RunEnded) -> None:
    """When the run was a trial of a search: the search goes on, or has its answer."""
    SEARCHES.step_ended(event.run)


def start_search(
    member: Member,
    choice: Choice,
    *,
    name: str,
    objective_metric: str,
    objective_ms: float,
    low_rps: float,
    high_rps: float,
    width_ratio: float = DEFAULT_WIDTH_RATIO,
    labels: Mapping[str, str] | None = None,
    priority: int = Run.Priority.NORMAL,
) -> CapacitySearch:
    """Store a search and launch its first trial. RequestError names the field that does not fit."""
    SEARCHES.check(member, name=name, hosts=choice.hosts, priority=priority)
    checked_labels = check_labels(labels or {})
    if objective_metric not in OBJECTIVES:
        raise RequestError(f"The objective is one of {', '.join(OBJECTIVES)}.", field="objective_metric")
    if not 0 < objective_ms < 3_600_000:
        raise RequestError("The objective is a time above 0 ms and below an hour.", field="objective_ms")
    load: WorkloadDocument = content_of(choice.workload)
    _check_samples(objective_metric, low_rps, load.phases[-1].duration_s)
    try:
        step_rps = float(rate_step_rps(load.driver, len(choice.drivers)))
    except PlanError as error:
        raise RequestError(error.message, field="workload") from error
    with transaction.atomic():
        search = CapacitySearch(
            team=member.team,
            name=name.strip(),
            application=choice.application,
            recipe=choice.recipe,
            parameters=dict(choice.parameters),
            workload=choice.workload,
            sut=choice.sut,
            drivers=driver_set(choice.drivers, choice.members),
            objective_metric=objective_metric,
            objective_ms=objective_ms,
            start_low_rps=low_rps,
            start_high_rps=high_rps,
            width_ratio=width_ratio,
            step_rps=step_rps,
            labels=checked_labels,
            priority=priority,
        )
        _check_bracket(search)
        SEARCHES.start(member, search)
    return search


def settings_of(search: CapacitySearch) -> SearchSettings:
    return SearchSettings(
        search.start_low_rps,
        search.start_high_rps,
        search.width_ratio,
        step_rps=search.step_rps,
        largest_rps=LARGEST_RPS,
    )


def next_step(search: CapacitySearch) -> Decision:
    """What follows after the trials that are over."""
    over = search.trials.exclude(result=SearchTrial.Result.NONE)
    return decide(settings_of(search), [Trial(trial.rate_rps, cast(TrialResult, trial.result)) for trial in over])


def _check_samples(metric: str, rate_rps: float, duration_s: float) -> None:
    """A percentile needs 10 / (1 - p) samples: else one late answer decides a trial."""
    percentile = _PERCENTILE.fullmatch(metric)
    if percentile is None:
        return
    needed = round(10 / (1 - float(percentile[1]) / 100))
    requests = rate_rps * duration_s
    if requests < needed:
        raise RequestError(
            f"{rate_rps:,.0f} requests/s for {duration_s:g} s are {requests:,.0f} requests, and p{percentile[1]} needs "
            f"{needed:,}: start higher, measure longer, or take another objective.",
            field="low_rps",
        )


def _check_bracket(search: CapacitySearch) -> None:
    try:
        settings_of(search)
    except ValueError as error:
        field = "width_ratio" if "width" in str(error) else "low_rps"
        raise RequestError(f"This cannot be searched: {error}.", field=field) from error
    if search.start_high_rps - search.start_low_rps < search.step_rps:
        raise RequestError(
            f"The load tool offers rates in steps of {search.step_rps:,.0f} requests/s; start with two different ones.",
            field="high_rps",
        )


def _choice_at(search: CapacitySearch, rate_rps: float) -> Choice:
    return Choice(
        search.application,
        search.recipe,
        search.workload,
        search.sut,
        search.drivers.in_order,
        search.parameters,
        rate_rps,
        members=search.drivers.members,
    )


def _judged(search: CapacitySearch, trial: SearchTrial, run: Run) -> Judgement:
    if run.outcome != Run.Outcome.SUCCEEDED:
        said = run.failure or f"The run ended as {run.get_outcome_display()}."
        if run.cause == Run.Cause.SPECIFICATION:  # it fails in the same way whenever it is tried
            return Judgement("invalid", f"{said} {run.failure_hint}".strip(), can_repeat=False)
        return Judgement("invalid", said)
    problems = [f["sentence"] for f in run.findings if f["level"] == "invalid" and f["check"] not in _OF_THE_SERVER]
    driver = [f["sentence"] for f in run.findings if f["level"] != "ok" and f["check"] in _DRIVER_CHECKS]
    return judge_trial(
        TrialFigures(
            offered_rps=trial.rate_rps,
            throughput_rps=run.throughput_rps,
            errors=run.errors_total or 0,
            latency_ms=run.metrics.get(search.objective_metric),
            latency_label=latency_name(search.objective_metric),
            objective_ms=search.objective_ms,
            problems=tuple(problems),
            driver_problems=tuple(driver),
            bad_statuses=sum(
                int(f["evidence"].get("errors_status", 0)) for f in run.findings if f["check"] == "errors"
            ),
        )
    )


def _answer(search: CapacitySearch, found: Found) -> str:
    said = (
        f"{found.low_rps:,.0f} requests/s are sustained with {objective_text(search)}, {found.high_rps:,.0f} "
        f"requests/s are not: the limit lies in between. {found.trials} trials. At least {COVERAGE:.0%} of such "
        "intervals hold the limit, when the width asked for is at least twice the noise between equal runs."
    ).replace("%", " %")
    if found.is_wider:
        said += (
            f" It is wider than the {search.width_ratio * 100:g} % asked for: the trials contradict each other too "
            "much for that. Ask for a larger width, or make the machines quieter."
        )
    return said
