"""Searches for the sustainable rate, live: each trial is an ordinary run, and its end launches the next one.

Nothing about a search lives in a process: every step is made of the trials in the database, in the transaction that
ends a trial's run. A worker that dies leaves a run to be resumed, and with it the search.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast

from django.db import transaction
from django.utils import timezone

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
from experiments.analysis.search_trial import Judgement, TrialFigures, judge_trial
from experiments.asking.launching.launch import Choice, cancel_run, freeze, launch_run
from experiments.asking.searches.reading import latency_name, objective_text
from experiments.models import CapacitySearch, Member, Role, Run, SearchTrial
from experiments.registry.documents.contents import content_of
from experiments.registry.errors import Conflict, RequestError
from experiments.registry.hosts.driver_sets import driver_set
from experiments.registry.metrics.vocabulary import METRICS
from experiments.registry.notes.labels import check_labels
from experiments.registry.teams import audit
from experiments.registry.teams.access import require, require_launch_on
from experiments.running.queue.priorities import check_priority

OBJECTIVES = tuple(name for name in METRICS if name.startswith("latency_"))
LARGEST_RPS = 1e9
_PERCENTILE = re.compile(r"latency_p([0-9.]+)_ms")
_DRIVER_CHECKS = frozenset({"driver_cpu"})
_OF_THE_SERVER = frozenset({"errors", "connect_errors", "offered_rate"})
"""Checks that make a run invalid, but say something about the server: the trial failed."""


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
    require_launch_on(member, choice.sut, *choice.drivers)
    check_priority(member, priority)
    checked_labels = check_labels(labels or {})
    if not name.strip():
        raise RequestError("Give the rate search a name.", field="name")
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
            drivers=driver_set(choice.drivers),
            objective_metric=objective_metric,
            objective_ms=objective_ms,
            start_low_rps=low_rps,
            start_high_rps=high_rps,
            width_ratio=width_ratio,
            step_rps=step_rps,
            labels=checked_labels,
            priority=priority,
            created_by_id=member.user_id,
        )
        first = _first(search)
        freeze(_choice_at(search, first.rate_rps))
        search.save()
        audit.record(member, "search.start", f"search {search.name}", after={"objective_ms": objective_ms})
        _launch(member, search, first, position=0)
    return search


def trial_ended(run: Run) -> None:
    """Judge the trial that this run was, and go on with its search. Call in the transaction that ends the run.

    Safe to repeat: a trial is judged once, and the trial that follows has a position of its own.
    """
    trial = SearchTrial.objects.filter(run_id=run.pk, result=SearchTrial.Result.NONE).first()
    if trial is None:
        return
    search = CapacitySearch.objects.select_for_update(of=("self",)).get(pk=trial.search_id)
    judgement = _judged(search, trial, run)
    trial.result, trial.reason = SearchTrial.Result(judgement.result), judgement.reason
    trial.save(update_fields=["result", "reason"])
    if search.state != CapacitySearch.State.RUNNING:
        return
    if run.outcome == Run.Outcome.CANCELLED:
        _end(search, CapacitySearch.State.CANCELLED, f"Its trial #{run.number} was cancelled.")
    elif not judgement.can_repeat:
        _end(search, CapacitySearch.State.STOPPED, judgement.reason)
    else:
        _go_on(search)


def cancel_search(member: Member, search: CapacitySearch) -> None:
    """End the search, and the trial that is under way. Conflict when it is over already."""
    require(member, Role.LAUNCHER)
    with transaction.atomic():
        # The run before the search, as everywhere: whoever ends a run locks them in this order.
        trial = search.trials.filter(result=SearchTrial.Result.NONE).select_related("run").last()
        run = None if trial is None else Run.objects.select_for_update(of=("self",)).get(pk=trial.run_id)
        locked = CapacitySearch.objects.select_for_update(of=("self",)).get(pk=search.pk)
        if locked.state != CapacitySearch.State.RUNNING:
            raise Conflict("This rate search is over already.")
        _end(locked, CapacitySearch.State.CANCELLED, f"Cancelled by {member.user.get_username()}.")
        if run is not None and run.is_live:
            cancel_run(member, run)
        audit.record(member, "search.cancel", f"search {locked.name}")
    search.refresh_from_db()


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


def _first(search: CapacitySearch) -> TryRate:
    try:
        settings = settings_of(search)
    except ValueError as error:
        field = "width_ratio" if "width" in str(error) else "low_rps"
        raise RequestError(f"This cannot be searched: {error}.", field=field) from error
    step = decide(settings, [])
    if not isinstance(step, TryRate) or search.start_high_rps - search.start_low_rps < search.step_rps:
        raise RequestError(
            f"The load tool offers rates in steps of {search.step_rps:,.0f} requests/s; start with two different ones.",
            field="high_rps",
        )
    return step


def _go_on(search: CapacitySearch) -> None:
    """Launch the next trial, or end the search."""
    step = next_step(search)
    if isinstance(step, Found):
        search.low_rps, search.high_rps = step.low_rps, step.high_rps
        _end(search, CapacitySearch.State.FINISHED, _answer(search, step))
    elif isinstance(step, NotFound):
        last = search.trials.exclude(reason="").last()
        _end(search, CapacitySearch.State.STOPPED, f"{step.sentence} The last trial: {last.reason if last else '-'}")
    else:
        user_id = search.created_by_id
        member = None if user_id is None else Member.objects.filter(team_id=search.team_id, user_id=user_id).first()
        if member is None:
            _end(search, CapacitySearch.State.STOPPED, "Whoever started it is no longer a member of the team.")
            return
        try:
            with transaction.atomic():
                _launch(member, search, step, position=search.trials.count())
        except RequestError as error:
            _end(search, CapacitySearch.State.STOPPED, f"The next trial could not be launched: {error.message}")


def _launch(member: Member, search: CapacitySearch, step: TryRate, *, position: int) -> None:
    labels = {**search.labels, "search": str(search.pk), "offered_rate_rps": f"{step.rate_rps:g}"}
    run = launch_run(member, _choice_at(search, step.rate_rps), labels=labels, priority=search.priority)
    SearchTrial.objects.create(search=search, position=position, rate_rps=step.rate_rps, phase=step.phase, run=run)


def _choice_at(search: CapacitySearch, rate_rps: float) -> Choice:
    return Choice(
        search.application,
        search.recipe,
        search.workload,
        search.sut,
        search.drivers.in_order,
        search.parameters,
        rate_rps,
    )


def _judged(search: CapacitySearch, trial: SearchTrial, run: Run) -> Judgement:
    if run.outcome != Run.Outcome.SUCCEEDED:
        return Judgement("invalid", run.failure or f"The run ended as {run.get_outcome_display()}.")
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
    return (
        f"{found.low_rps:,.0f} requests/s are sustained with {objective_text(search)}, {found.high_rps:,.0f} "
        f"requests/s are not: the limit lies in between. {found.trials} trials."
    )


def _end(search: CapacitySearch, state: CapacitySearch.State, sentence: str) -> None:
    search.state, search.sentence, search.finished_at = state, sentence, timezone.now()
    search.save()
