"""Bisections: what came of a step, and which candidate is compared next."""

from __future__ import annotations

from typing import cast

from experiments.analysis.bisection import Between, Compare, Decision, FirstBad, Step, StepResult, decide, result_of
from experiments.asking.bisections.plan import BisectionPlan, candidates_for
from experiments.asking.inquiries.engine import End, Inquiries, State
from experiments.asking.launching.cancelling import cancel_experiment, hold_experiment
from experiments.asking.launching.creating import create_experiment
from experiments.asking.launching.launch import launch_experiment
from experiments.judging.verdicts.verdict_numbers import VerdictNumbers
from experiments.models import Bisection, BisectionStep, Experiment, Member, Run, StoredVerdict
from experiments.models.experiments import OPEN
from experiments.registry.events import ExperimentEnded, RunEnded
from experiments.registry.experiments.rules import Rules


class Bisections(Inquiries[Bisection, BisectionStep, Experiment, Compare]):
    """Each step is an experiment of the good one against one candidate."""

    model = Bisection
    word, title, step_word = "bisection", "bisection", "step"

    def told(self, inquiry: Bisection) -> dict[str, object]:
        return {"candidates": inquiry.candidates, "parameter": inquiry.parameter, "metric": inquiry.metric}

    def decide(self, inquiry: Bisection) -> Compare | End:
        decision, names = next_step(inquiry), inquiry.names
        if isinstance(decision, Compare):
            inquiry.low, inquiry.high = decision.low, decision.high
            return decision
        if isinstance(decision, FirstBad):
            inquiry.low, inquiry.high = decision.index - 1, decision.index
            said = f"{names[decision.index]} is the first bad one. {_said(inquiry, decision.index)}"
            if decision.index > 1:
                said += f" The one before it: {_said(inquiry, decision.index - 1)}"
            return End(State.FINISHED, said)
        if isinstance(decision, Between):
            inquiry.low, inquiry.high = decision.low, decision.high
            unclear = ", ".join(names[decision.low + 1 : decision.high])
            return End(
                State.FINISHED,
                f"The first bad one is somewhere after {names[decision.low]} and not after {names[decision.high]}: "
                f"{unclear} stayed unclear. {_said(inquiry, decision.high)}",
            )
        why = "so there is nothing to find" if decision.result == "good" else "so the search has no end to start from"
        said = f"{names[-1]} was not found to be worse than {names[0]}, {why}. {_said(inquiry, len(names) - 1)}"
        return End(State.STOPPED, said)

    def launch(self, member: Member, inquiry: Bisection, following: Compare) -> None:
        position, names = inquiry.steps.count(), inquiry.names
        experiment = create_experiment(
            member,
            name=f"{inquiry.name[:80]}, step {position + 1}",
            question=f"Is {names[following.index]} worse than {names[0]}?"[:400],
            workload=inquiry.workload,
            candidates=candidates_for(inquiry, following.index),
            primary_metric=inquiry.metric,
            margin_ratio=inquiry.margin_ratio,
            rules=Rules(stop_rule=Experiment.StopRule.UNTIL_NOT_WORSE, max_blocks=inquiry.max_blocks),
            labels=self.labels_of(inquiry),
        )
        inquiry.steps.create(position=position, index=following.index, experiment=experiment)
        launch_experiment(member, experiment, priority=inquiry.priority)

    def open_step(self, launched: Experiment) -> BisectionStep | None:
        return BisectionStep.objects.filter(experiment=launched, result=BisectionStep.Result.NONE).first()

    def inquiry_id(self, step: BisectionStep) -> int:
        return step.bisection_id

    def step_name(self, step: BisectionStep, launched: Experiment) -> str:
        return f"step {step.position + 1}"

    def judge(self, inquiry: Bisection, step: BisectionStep, launched: Experiment) -> End | None:
        """The stored verdict for the metric decides. A step that was cancelled has no result."""
        if launched.state == Experiment.State.CANCELLED:
            return None
        verdict = StoredVerdict.objects.filter(experiment=launched, metric=launched.primary_metric).first()
        if verdict is None:
            step.result, step.sentence = BisectionStep.Result.UNCLEAR, "No verdict was stored."
        else:
            is_not_worse = VerdictNumbers.of(verdict).not_worse
            step.result = BisectionStep.Result(result_of(verdict.outcome, is_not_worse=is_not_worse))
            step.sentence = verdict.sentence
            step.estimate_pct = verdict.numbers.get("estimate_pct")
            if interval := verdict.numbers.get("ci95_pct"):
                step.ci95_low_pct, step.ci95_high_pct = interval
        step.save()
        return None

    def why_cancelled(self, step: BisectionStep, launched: Experiment) -> str:
        return f"Its step {step.position + 1} was cancelled." if launched.state == Experiment.State.CANCELLED else ""

    def hold_open_step(self, inquiry: Bisection) -> BisectionStep | None:
        step = inquiry.steps.filter(result=BisectionStep.Result.NONE).last()
        if step is not None:
            step.experiment = hold_experiment(step.experiment_id)
        return step

    def cancel_step(self, member: Member, step: BisectionStep) -> None:
        if step.experiment.state in OPEN:
            cancel_experiment(member, step.experiment)


BISECTIONS = Bisections()


def experiment_ended(event: ExperimentEnded) -> None:
    """When the experiment was a step of a bisection: the bisection goes on, or has its answer."""
    BISECTIONS.step_ended(event.experiment)


def run_ended(event: RunEnded) -> None:
    """When a run of the good one cannot start as it is specified, no step can have a result: the bisection stops."""
    run = event.run
    if run.outcome != Run.Outcome.FAILED or run.cause != Run.Cause.SPECIFICATION:
        return
    if run.experiment is None or run.variant is None or not run.variant.is_baseline:
        return
    why = f"{run.variant.name} cannot run as it is specified (run #{run.number}): {run.failure} {run.failure_hint}"
    BISECTIONS.cannot_run(hold_experiment(run.experiment.pk), why.strip())


def start_bisection(member: Member, plan: BisectionPlan) -> Bisection:
    """Store a bisection and launch its first step. RequestError names the field that does not fit."""
    BISECTIONS.check(
        member, name=plan.name, hosts=(plan.sut, *plan.members.values(), *plan.drivers), priority=plan.priority
    )
    bisection = plan.checked(member.team)
    BISECTIONS.start(member, bisection)
    return bisection


def next_step(bisection: Bisection) -> Decision:
    """What follows after the steps that are over."""
    return decide(len(bisection.candidates), steps_over(bisection))


def steps_over(bisection: Bisection) -> list[Step]:
    over = bisection.steps.exclude(result=BisectionStep.Result.NONE)
    return [Step(step.index, cast(StepResult, step.result)) for step in over]


def _said(bisection: Bisection, index: int) -> str:
    return bisection.steps.filter(index=index).values_list("sentence", flat=True).last() or ""
