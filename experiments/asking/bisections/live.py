"""Bisections, live: each step is an ordinary experiment, and its end launches the next one.

Nothing about a bisection lives in a process: every step is made of the stored results of the steps before it, in the
transaction that ends an experiment. A worker that dies leaves a run to be resumed, and with it the bisection.
"""

from __future__ import annotations

import logging
from typing import cast

from django.db import transaction
from django.utils import timezone

from agents.base.errors import MISTAKE_HINT
from experiments.analysis.bisection import Between, Compare, Decision, FirstBad, Step, StepResult, decide
from experiments.asking.bisections.plan import BisectionPlan, candidates_for
from experiments.asking.launching.launch import cancel_experiment, create_experiment, launch_experiment
from experiments.models import Bisection, BisectionStep, Experiment, Member, Role, StoredVerdict
from experiments.registry.errors import Conflict, RequestError
from experiments.registry.experiments.rules import Rules
from experiments.registry.teams import audit
from experiments.registry.teams.access import acting_member, require, require_launch_on
from experiments.running.queue.priorities import check_priority

logger = logging.getLogger(__name__)

RESULTS: dict[str, StepResult] = {
    "worse": "bad",
    "worse_size_uncertain": "bad",
    "better": "good",
    "better_size_uncertain": "good",
    "no_practical_difference": "good",
}
"""Verdict -> result of the step; every other verdict leaves it unclear."""


def start_bisection(member: Member, plan: BisectionPlan) -> Bisection:
    """Store a bisection and launch its first step. RequestError names the field that does not fit."""
    require_launch_on(member, plan.sut, *plan.drivers)
    check_priority(member, plan.priority)
    bisection = plan.checked(member.team)
    bisection.created_by_id = member.user_id
    with transaction.atomic():
        bisection.save()
        audit.record(
            member,
            "bisection.start",
            f"bisection {bisection.name}",
            after={"candidates": bisection.candidates, "parameter": bisection.parameter, "metric": bisection.metric},
        )
        first = next_step(bisection)
        if isinstance(first, Compare):
            _launch(member, bisection, first)
    return bisection


def step_ended(experiment: Experiment) -> None:
    """Judge the step that this experiment was, and go on. Call in the transaction that ends the experiment.

    Safe to repeat: a step is judged once, and the one that follows has a position of its own.
    """
    step = BisectionStep.objects.filter(experiment=experiment, result=BisectionStep.Result.NONE).first()
    if step is None:
        return
    bisection = Bisection.objects.select_for_update(of=("self",)).get(pk=step.bisection_id)
    if bisection.state != Bisection.State.RUNNING:
        return
    if experiment.state == Experiment.State.CANCELLED:
        _end(bisection, Bisection.State.CANCELLED, f"Its step {step.position + 1} was cancelled.")
        return
    try:
        with transaction.atomic():
            _judge(step, experiment)
            _go_on(bisection)
    except Exception:  # an experiment ends even if its bisection cannot go on
        logger.exception("bisection %s cannot go on after experiment %s", bisection.pk, experiment.pk)
        sentence = f"BenchHub failed to go on after step {step.position + 1}. {MISTAKE_HINT}"
        _end(bisection, Bisection.State.STOPPED, sentence)


def cancel_bisection(member: Member, bisection: Bisection) -> None:
    """End the bisection and the experiment that is under way. Conflict when it is over already."""
    require(member, Role.LAUNCHER)
    with transaction.atomic():
        # The experiment first, with its runs, as everywhere: whoever ends a step locks them in this order.
        step = bisection.steps.filter(result=BisectionStep.Result.NONE).select_related("experiment").last()
        if step is None or not Bisection.objects.filter(pk=bisection.pk, state=Bisection.State.RUNNING).exists():
            raise Conflict("This bisection is over already.")
        cancel_experiment(member, step.experiment)  # Conflict when it came to its end at this moment
        locked = Bisection.objects.select_for_update(of=("self",)).get(pk=bisection.pk)
        _end(locked, Bisection.State.CANCELLED, f"Cancelled by {member.user.get_username()}.")
        audit.record(member, "bisection.cancel", f"bisection {locked.name}")
    bisection.refresh_from_db()


def next_step(bisection: Bisection) -> Decision:
    """What follows after the steps that are over."""
    return decide(len(bisection.candidates), steps_over(bisection))


def steps_over(bisection: Bisection) -> list[Step]:
    over = bisection.steps.exclude(result=BisectionStep.Result.NONE)
    return [Step(step.index, cast(StepResult, step.result)) for step in over]


def _judge(step: BisectionStep, experiment: Experiment) -> None:
    """The stored verdict for the metric decides."""
    verdict = StoredVerdict.objects.filter(experiment=experiment, metric=experiment.primary_metric).first()
    if verdict is None:
        step.result, step.sentence = BisectionStep.Result.UNCLEAR, "No verdict was stored."
    else:
        step.result = BisectionStep.Result(RESULTS.get(verdict.outcome, "unclear"))
        step.sentence = verdict.sentence
        step.estimate_pct = verdict.numbers.get("estimate_pct")
        if interval := verdict.numbers.get("ci95_pct"):
            step.ci95_low_pct, step.ci95_high_pct = interval
    step.save()


def _go_on(bisection: Bisection) -> None:
    """Launch the next step, or end the bisection."""
    decision = next_step(bisection)
    names = bisection.names
    if isinstance(decision, Compare):
        bisection.low, bisection.high = decision.low, decision.high
        bisection.save(update_fields=["low", "high"])
        _launch_next(bisection, decision)
    elif isinstance(decision, FirstBad):
        bisection.low, bisection.high = decision.index - 1, decision.index
        said = f"{names[decision.index]} is the first bad one. {_said(bisection, decision.index)}"
        if decision.index > 1:
            said += f" The one before it: {_said(bisection, decision.index - 1)}"
        _end(bisection, Bisection.State.FINISHED, said)
    elif isinstance(decision, Between):
        bisection.low, bisection.high = decision.low, decision.high
        unclear = ", ".join(names[decision.low + 1 : decision.high])
        _end(
            bisection,
            Bisection.State.FINISHED,
            f"The first bad one is somewhere after {names[decision.low]} and not after {names[decision.high]}: "
            f"{unclear} stayed unclear. {_said(bisection, decision.high)}",
        )
    else:
        why = "so there is nothing to find" if decision.result == "good" else "so the search has no end to start from"
        said = f"{names[-1]} was not found to be worse than {names[0]}, {why}. {_said(bisection, len(names) - 1)}"
        _end(bisection, Bisection.State.STOPPED, said)


def _launch_next(bisection: Bisection, step: Compare) -> None:
    member = acting_member(bisection.team_id, bisection.created_by_id)
    if member is None:
        _end(bisection, Bisection.State.STOPPED, "Whoever started it is no longer a member of the team.")
        return
    try:
        with transaction.atomic():
            _launch(member, bisection, step)
    except RequestError as error:
        _end(bisection, Bisection.State.STOPPED, f"The next step could not be launched: {error.message}")


def _launch(member: Member, bisection: Bisection, step: Compare) -> None:
    position = bisection.steps.count()
    names = bisection.names
    experiment = create_experiment(
        member,
        name=f"{bisection.name[:80]}, step {position + 1}",
        question=f"Is {names[step.index]} worse than {names[0]}?"[:400],
        workload=bisection.workload,
        candidates=candidates_for(bisection, step.index),
        primary_metric=bisection.metric,
        margin_ratio=bisection.margin_ratio,
        rules=Rules(stop_rule=Experiment.StopRule.UNTIL_CLEAR, max_blocks=bisection.max_blocks),
        labels={**bisection.labels, "bisection": str(bisection.pk)},
    )
    BisectionStep.objects.create(bisection=bisection, position=position, index=step.index, experiment=experiment)
    launch_experiment(member, experiment, priority=bisection.priority)


def _said(bisection: Bisection, index: int) -> str:
    return bisection.steps.filter(index=index).values_list("sentence", flat=True).last() or ""


def _end(bisection: Bisection, state: Bisection.State, sentence: str) -> None:
    bisection.state, bisection.sentence, bisection.finished_at = state, sentence, timezone.now()
    bisection.save()
