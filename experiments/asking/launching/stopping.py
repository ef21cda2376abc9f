"""What follows when an experiment has no open run: further blocks, its end, or a stop because of its A/A check.

Everything is worked out again from the stored runs, under the lock of the experiment's row and in the transaction that
ended the last run: a worker that dies leaves nothing half done, and two runs that end at once add no block twice.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from experiments.analysis.wording import duration, sentence
from experiments.asking.launching.factory import Terms, queue_blocks
from experiments.judging.verdicts.judging import (
    comparisons_of,
    finished_runs,
    judge_aa,
    seconds_per_run,
    store_verdicts,
    words_of,
)
from experiments.models import Experiment, Run, Variant
from experiments.registry.events import BlocksEnded
from experiments.registry.experiments.blocks import run_order, with_twins
from experiments.registry.metrics.vocabulary import label_of
from experiments.registry.runs.numbers import reserve_numbers

MOST_WASTED = 5
"""Blocks without a usable pair of runs, beyond which more of the same is a waste of the hosts."""


@dataclass(frozen=True)
class Step:
    """Further blocks by candidate (0 = none), or none at all; `reason` is one sentence for the page."""

    blocks: Mapping[int, int]
    reason: str

    @property
    def goes_on(self) -> bool:
        return any(self.blocks.values())


def blocks_ended(event: BlocksEnded) -> None:
    """Add the next blocks, or end the experiment."""
    experiment = event.experiment
    if experiment.aa_first and not experiment.aa_result and not _check_aa(experiment):
        return
    if experiment.state == Experiment.State.BLOCKED:
        return
    runs = finished_runs(experiment)
    compares = [run for run in runs if run.block is not None and run.block >= experiment.first_block]
    if experiment.aa_first and not compares:
        if experiment.state == Experiment.State.RUNNING:
            first = experiment.first_block
            _queue(experiment, list(experiment.variants.all()), range(first, first + experiment.repetitions))
        return
    step = next_step(experiment, compares, spent_s=spent_s([*runs, *experiment.runs.filter(profiled=True)]))
    if step.goes_on:
        if experiment.state == Experiment.State.RUNNING:
            _add(experiment, step, compares)
        return
    if experiment.stop_rule != Experiment.StopRule.FIXED:
        store_verdicts(experiment, spent=True)  # what is left since the last look is looked at, too
    _finish(experiment, step.reason)


def next_step(experiment: Experiment, runs: Sequence[Run], *, spent_s: float) -> Step:
    """Which candidates need how many further blocks; the widest interval in margins goes first in a tight budget."""
    if experiment.stop_rule == Experiment.StopRule.FIXED:
        return Step({}, "")
    compared = comparisons_of(experiment, list(experiment.variants.all()), runs, spent=False)
    deciding = [one for one in compared if one.decides]
    wanted: dict[int, int] = {}
    urgency: dict[int, float] = {}
    for one in deciding:
        following = one.standing.next_blocks
        if following is not None:
            pk = one.candidate.pk
            more = following - one.standing.blocks
            wanted[pk] = min(more, wanted.get(pk, more))
            urgency[pk] = max(one.standing.urgency, urgency.get(pk, 0.0))
    names = {one.candidate.pk: one.candidate.name for one in deciding}
    if not wanted:
        return Step({}, f"Stopped after {_blocks(runs)} blocks: {_reached(experiment)}.")
    launched = {pk: len({run.block for run in runs if run.variant_id == pk}) for pk in wanted}
    possible = {pk: min(more, experiment.max_blocks - launched[pk]) for pk, more in wanted.items()}
    possible = {pk: more for pk, more in possible.items() if more > 0}
    open_names = ", ".join(names[pk] for pk in wanted)
    complete = {one.candidate.pk: one.standing.blocks for one in deciding}
    if all(launched[pk] - complete[pk] > MOST_WASTED for pk in wanted):
        wasted = max(launched[pk] - complete[pk] for pk in wanted)
        return Step({}, f"Stopped: {wasted} blocks do not count; look at why runs fail or are invalid: {open_names}.")
    if not possible:
        return Step({}, f"Stopped at the cap of {experiment.max_blocks} blocks; not settled: {open_names}.")
    left_s = math.inf if experiment.max_hours is None else experiment.max_hours * 3600 - spent_s
    cost_s = (seconds_per_run(runs) or 0.0) * (2 if experiment.profilers else 1)  # the twin takes as long
    chosen: dict[int, int] = {}
    for pk in sorted(possible, key=lambda pk: -urgency[pk]):
        wider = {**chosen, pk: possible[pk]}
        if cost_s * (sum(wider.values()) + max(wider.values())) <= left_s:
            chosen = wider
    if not chosen:
        cap = duration((experiment.max_hours or 0.0) * 3600)
        return Step({}, f"Stopped: the cap of {cap} leaves no time for the next look; not settled: {open_names}.")
    return Step(chosen, f"Goes on for {', '.join(names[pk] for pk in chosen)}: not settled yet.")


def spent_s(runs: Sequence[Run]) -> float:
    """Machine time of the runs so far, those of failed and invalid ones included."""
    return sum((run.finished_at - run.started_at).total_seconds() for run in runs if run.started_at and run.finished_at)


def _check_aa(experiment: Experiment) -> bool:
    """Judge the baseline against itself and store what came out; False when that blocks the experiment."""
    baseline = experiment.variants.get(is_baseline=True)
    runs = [run for run in finished_runs(experiment) if run.block is not None and run.block < experiment.first_block]
    verdict = judge_aa(experiment, runs, baseline)
    label = label_of(experiment.primary_metric)
    said = sentence(verdict, baseline.name, "itself", label, words=words_of(experiment.primary_metric))
    experiment.aa_result = {
        "outcome": verdict.outcome,
        "sentence": said,
        "estimate_pct": verdict.estimate_pct,
        "ci95_pct": list(verdict.ci95_pct) if verdict.ci95_pct else None,
        "cov_pct": verdict.cov_pct,
        "n": verdict.n_a,
    }
    blocked = ""
    if verdict.outcome in ("better", "worse"):
        blocked = (
            f"The A/A check found a difference where there is none. {said} Something besides the variants changes "
            "between two runs: look for other load on the hosts, CPU frequency, memory or caches that a run leaves "
            "behind, and correct the recipe. Then launch a copy, or resume to go on as it is."
        )
    elif verdict.outcome == "invalid":
        blocked = (
            f"The A/A check could not be made: {verdict.n_a} of {experiment.AA_PAIRS} pairs of runs count. Look at "
            "why its runs are invalid or failed and correct that. Then launch a copy, or resume to go on without it."
        )
    experiment.state_reason = blocked
    if blocked:
        experiment.state = Experiment.State.BLOCKED
    experiment.save(update_fields=["aa_result", "state", "state_reason"])
    return not blocked


def _add(experiment: Experiment, step: Step, runs: Sequence[Run]) -> None:
    variants = list(experiment.variants.all())
    first = max(run.block for run in runs if run.block is not None) + 1
    for offset in range(max(step.blocks.values())):
        members = [v for v in variants if v.is_baseline or step.blocks.get(v.pk, 0) > offset]
        _queue(experiment, members, range(first + offset, first + offset + 1))
    experiment.state_reason = step.reason
    experiment.save(update_fields=["state_reason"])


def _queue(experiment: Experiment, variants: Sequence[Variant], blocks: range) -> None:
    """Queue these blocks for whoever launched the experiment, with the specs of that launch."""
    like = experiment.runs.filter(retry_of=None).order_by("-id").defer("findings", "metrics").first()
    if like is None:
        return
    order = with_twins(experiment, run_order(variants, blocks, order=experiment.order, seed=experiment.seed))
    terms = Terms(
        like.created_by_id, like.priority, like.retries_left, labels=experiment.labels, is_demo=experiment.is_demo
    )
    queue_blocks(experiment, order, terms, number=reserve_numbers(experiment.team, len(order)))
    experiment.repetitions = blocks.stop - experiment.first_block
    experiment.save(update_fields=["repetitions"])


def _finish(experiment: Experiment, reason: str) -> None:
    experiment.state, experiment.state_reason = Experiment.State.FINISHED, reason
    experiment.save(update_fields=["state", "state_reason"])


def _blocks(runs: Sequence[Run]) -> int:
    return len({run.block for run in runs})


def _reached(experiment: Experiment) -> str:
    if experiment.stop_rule == Experiment.StopRule.UNTIL_CLEAR:
        return "every verdict that decides is clear"
    if experiment.stop_rule == Experiment.StopRule.UNTIL_NOT_WORSE:
        return "it is clear whether it is worse"
    return f"every interval is within ±{100 * (experiment.target_ratio or 0):g} %"
