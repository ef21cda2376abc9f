"""Tuning searches: what came of a trial, and which configuration is tried next.

The trials of a round are stored together when they are decided, and launched one after the other; each in the
transaction that ends the one before. A round is worked out right after that transaction, for it takes seconds, and
stored unless the search changed meanwhile. What is decided is a function of what is stored
(`experiments.analysis.tuning`) and of which hosts are in service.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import asdict
from datetime import timedelta
from functools import partial

from django.db import transaction

from experiments.analysis.tuning import search
from experiments.analysis.tuning.smallest import Smallest
from experiments.analysis.tuning.trials import FEWEST_RUNS, Planned, ended_invalid
from experiments.asking.inquiries.engine import End, Inquiries, Later, State
from experiments.asking.launching.cancelling import cancel_run
from experiments.asking.launching.choices import freeze
from experiments.asking.launching.launch import launch_run
from experiments.asking.tunings import rounds
from experiments.asking.tunings.judged import judged
from experiments.asking.tunings.more_budget import More, more_for, runs_to_look_for_others
from experiments.asking.tunings.plan import MOST_HOURS, MOST_RUNS, TuningPlan, choice_with_config
from experiments.asking.tunings.rounds import Worked, question_of
from experiments.asking.tunings.trials import hours_are_used_up, runs_in_hours, settings_of, trials_over
from experiments.asking.tunings.wording import (
    answer_sentence,
    measured_json,
    smallest_sentence,
    together_sentence,
)
from experiments.models import Member, Run, Tuning, TuningTrial
from experiments.registry.database_clock import database_now
from experiments.registry.errors import DATABASE_AWAY, RequestError
from experiments.registry.events import RunEnded

logger = logging.getLogger(__name__)

Outcome = Tuning.Outcome
FIRST = "the default, to compare with"


class Tunings(Inquiries[Tuning, TuningTrial, Run, TuningTrial]):
    """Each trial is a run of one configuration."""

    model = Tuning
    word, title, step_word = "tuning", "tuning search", "trial"

    def told(self, inquiry: Tuning) -> dict[str, object]:
        return {"metric": inquiry.metric, "runs": inquiry.budget_runs, "hours": inquiry.budget_hours}

    def may_go_on(self, inquiry: Tuning) -> bool:
        return not inquiry.paused

    def decide(self, inquiry: Tuning) -> TuningTrial | End | Later:
        """The next trial that is planned. The first one is the default; every later round has to be worked out."""
        return self._decide(inquiry, None)

    def _decide(self, inquiry: Tuning, worked: Worked | None) -> TuningTrial | End | Later:
        """As `decide`, with a round that was worked out, which is stored if its question still is the search's.

        A trial that cannot be launched as it is, because a step refuses the values together, is refused without a run,
        and the next one follows. Trials of a host that is not in service go to the others, unless there are none.
        """
        while True:
            over = trials_over(inquiry)
            settings = settings_of(inquiry, over)
            planned = inquiry.trials.filter(run=None, result=TuningTrial.Result.NONE)
            if hours_are_used_up(inquiry, over):
                planned.delete()
            elif (trial := planned.first()) is not None:
                hosts = settings.confirming if trial.purpose == TuningTrial.Purpose.CONFIRM else settings.able
                if trial.host not in hosts:
                    planned.delete()
                elif not (why := _why_refused(inquiry, trial)):
                    return trial
                else:
                    trial.result, trial.reason = TuningTrial.Result.REFUSED, why
                    trial.save(update_fields=["result", "reason"])
                    continue
            if not over:
                self._plan(inquiry, (Planned(inquiry.default, settings.able[0], "control", FIRST),))
                continue
            if worked is None or worked.question != question_of(inquiry, over, settings):
                return Later()
            following = self._following(inquiry, over, worked)
            if isinstance(following, End):
                return following
            self._wait_to_confirm(inquiry, over, following)
            self._plan(inquiry, following)

    def _plan(self, inquiry: Tuning, following: tuple[Planned, ...]) -> None:
        first = inquiry.trials.count()
        for place, one in enumerate(following):
            inquiry.trials.create(
                position=first + place, purpose=one.purpose, config=dict(one.config), why=one.why, host=one.host,
                block=one.block,
            )  # fmt: skip

    def _wait_to_confirm(self, inquiry: Tuning, over: list[TuningTrial], following: tuple[Planned, ...]) -> None:
        """Pause before the first pair of the confirmation, when that was asked for."""
        confirm = TuningTrial.Purpose.CONFIRM
        if inquiry.confirm_after_hours is None or inquiry.confirms_at is not None or following[0].purpose != confirm:
            return
        if not any(one.purpose == confirm for one in over):
            inquiry.paused = True
            inquiry.confirms_at = database_now() + timedelta(hours=inquiry.confirm_after_hours)

    def launch(self, member: Member, inquiry: Tuning, following: TuningTrial) -> None:
        labels = {**self.labels_of(inquiry), "trial": str(following.position + 1)}
        choice = choice_with_config(inquiry, following.config, following.host)
        following.run = launch_run(member, choice, labels=labels, priority=inquiry.priority)
        following.save(update_fields=["run"])

    def open_step(self, launched: Run) -> TuningTrial | None:
        return TuningTrial.objects.filter(run_id=launched.pk, result=TuningTrial.Result.NONE).first()

    def inquiry_id(self, step: TuningTrial) -> int:
        return step.tuning_id

    def step_name(self, step: TuningTrial, launched: Run) -> str:
        return f"run #{launched.number}"

    def judge(self, inquiry: Tuning, step: TuningTrial, launched: Run) -> End | None:
        found = judged(inquiry, step, launched)
        step.result, step.reason, step.figure, step.bounded = (
            found.result,
            found.reason,
            found.figure,
            list(found.bounded),
        )
        if launched.started_at and launched.finished_at:
            step.start_hours = (launched.started_at - inquiry.created_at).total_seconds() / 3600
            step.duration_s = (launched.finished_at - launched.started_at).total_seconds()
        step.save()
        if launched.restore == Run.Restore.DIRTY:
            said = f"After run #{launched.number} a host could not be proven to be as before, so nothing more is tried."
            return End(State.STOPPED, said)
        if found.hopeless:
            return End(State.STOPPED, found.reason)
        controls = inquiry.trials.filter(purpose=TuningTrial.Purpose.CONTROL)
        refused = found.result == TuningTrial.Result.REFUSED and step.purpose == TuningTrial.Purpose.CONTROL
        if refused and not controls.filter(result=TuningTrial.Result.OK).exists():
            return End(State.STOPPED, f"The default itself does not run (run #{launched.number}): {found.reason}")
        return None

    def why_cancelled(self, step: TuningTrial, launched: Run) -> str:
        return f"Its trial #{launched.number} was cancelled." if launched.outcome == Run.Outcome.CANCELLED else ""

    def hold_open_step(self, inquiry: Tuning) -> TuningTrial | None:
        step = inquiry.trials.filter(result=TuningTrial.Result.NONE).exclude(run=None).last()
        if step is not None and step.run_id is not None:
            step.run = Run.objects.select_for_update(of=("self",)).get(pk=step.run_id)
        return step

    def cancel_step(self, member: Member, step: TuningTrial) -> None:
        if step.run is not None and step.run.is_live:
            cancel_run(member, step.run)

    def take_up(self, inquiry: Tuning) -> None:
        """Launch what follows, unless a trial is under way. The row must be locked.

        A trial whose run has ended while nobody could judge it is judged now.
        """
        trial = inquiry.trials.filter(result=TuningTrial.Result.NONE).exclude(run=None).select_related("run").last()
        if trial is None:
            self.go_on(inquiry)
            return
        inquiry.save()
        if trial.run is not None and not trial.run.is_live:
            self.step_ended(trial.run)

    def work_out_later(self, inquiry: Tuning) -> None:
        transaction.on_commit(partial(self.work_out, inquiry.pk), robust=True)

    def work_out(self, tuning_id: int) -> None:
        """Work out the round that follows, in no transaction, and go on with it unless the search changed meanwhile.

        Safe to repeat, and to be done by several at once. Whoever dies here leaves a search to `go_on_due`.
        """
        tuning = Tuning.objects.select_related("sut", "recipe").filter(pk=tuning_id).first()
        if tuning is None or not _awaits(tuning):
            return
        over = trials_over(tuning)
        try:
            worked = rounds.work_out(question_of(tuning, over, settings_of(tuning, over))) if over else None
            with transaction.atomic():
                locked = self.locked(tuning_id)
                if _awaits(locked):
                    self.follow(locked, self._decide(locked, worked))
        except DATABASE_AWAY:
            raise
        except Exception:
            logger.exception("tuning %s: the round after %s trials cannot be worked out", tuning_id, len(over))
            with transaction.atomic():
                self.stop_for_mistake(self.locked(tuning_id), f"after {len(over)} trials")

    def _following(self, inquiry: Tuning, over: list[TuningTrial], worked: Worked) -> tuple[Planned, ...] | End:
        """What was worked out of these trials, none of which is open; what is known by it is set on the row."""
        if inquiry.outcome:
            return self._reduced(inquiry, over, worked)
        step = worked.step
        inquiry.best = asdict(worked.best) if worked.best else None
        if step is None:
            raise TypeError("a search without a winner has a step")
        if isinstance(step, search.Round) and not hours_are_used_up(inquiry, over):
            return step.planned
        if not isinstance(step, search.Better):
            return without_gain(inquiry, over, step)
        inquiry.outcome, inquiry.winner = Outcome.BETTER, dict(step.claim.config)
        inquiry.gain_ratio, inquiry.low_ratio, inquiry.high_ratio = step.claim.gain, step.claim.low, step.claim.high
        return self._reduced(inquiry, over, worked)

    def _reduced(self, inquiry: Tuning, over: list[TuningTrial], worked: Worked) -> tuple[Planned, ...] | End:
        """After a gain: what the smallest recipe needs, when it is asked for."""
        said = answer_sentence(inquiry, over)
        step = worked.reduced
        if not inquiry.reduces or step is None:
            return End(State.FINISHED, said)
        if not isinstance(step, Smallest):
            if hours_are_used_up(inquiry, over):
                return End(State.FINISHED, f"{said} The hours were used up before the smallest recipe was known.")
            if ended_invalid(worked.question.newest_reverted):
                return End(State.FINISHED, f"{said} The newest runs were invalid, so the smallest recipe is not known.")
            return step
        inquiry.smallest = {
            "config": dict(step.config),
            "dropped": list(step.dropped),
            "each": [
                {
                    "parameter": one.parameter,
                    "may_go": one.may_go,
                    "sentence": smallest_sentence(inquiry, one),
                    **measured_json(one.verdict),
                }
                for one in step.each
            ],
            "together": _together(step),
        }
        return End(State.FINISHED, said)


TUNINGS = Tunings()


def run_ended(event: RunEnded) -> None:
    """When the run was a trial of a tuning search: the search goes on, or has its answer."""
    TUNINGS.step_ended(event.run)


def start_tuning(member: Member, plan: TuningPlan) -> Tuning:
    """Store a search and launch its first trial. RequestError names the field that does not fit."""
    TUNINGS.check(member, name=plan.name, hosts=plan.choice.hosts, priority=plan.priority)
    tuning = plan.checked(member)
    TUNINGS.start(member, tuning, plan.suts_of(tuning))
    return tuning


def _why_refused(tuning: Tuning, trial: TuningTrial) -> str:
    """Why a run of this configuration cannot be made as it is; "" when it can."""
    try:
        freeze(choice_with_config(tuning, trial.config, trial.host))
    except RequestError as error:
        of_parameters = error.field.partition(".")[0] == "parameters"
        return error.message if of_parameters else ""  # all else is no fault of the configuration
    return ""


def _awaits(tuning: Tuning) -> bool:
    """Whether the next trial is to be launched, and none is under way."""
    is_open = tuning.trials.filter(result=TuningTrial.Result.NONE).exclude(run=None)
    return tuning.state == State.RUNNING and not tuning.paused and not is_open.exists()


def _together(found: Smallest) -> dict[str, object] | None:
    sentence = together_sentence(found)
    return {"sentence": sentence, **measured_json(found.together)} if sentence else None


def without_gain(
    tuning: Tuning, over: Sequence[TuningTrial], step: search.Round | search.NothingBetter | search.BudgetTooSmall
) -> End:
    """How a search without a gain ends; what came of it is set on the row. A round is one that has no hours left."""
    if isinstance(step, search.NothingBetter) and step.stopped:
        return End(State.STOPPED, step.sentence)
    if isinstance(step, search.BudgetTooSmall):
        tuning.outcome, tuning.more_runs = Outcome.BUDGET_TOO_SMALL, step.more_runs
        more = more_for(tuning, over, step.more_runs)
        hours = f" They take about {more.hours:g} hours more than it has." if more.hours else ""
        return End(State.FINISHED, f"{step.sentence}{hours}{_beyond(tuning, more)}")
    within = runs_in_hours(tuning, over)
    has_few = within is not None and within < FEWEST_RUNS
    if isinstance(step, search.NothingBetter) and not has_few:
        tuning.outcome = Outcome.NOTHING_BETTER
        return End(State.FINISHED, step.sentence)
    tuning.outcome, tuning.more_runs = Outcome.BUDGET_TOO_SMALL, runs_to_look_for_others(tuning, over)
    more = more_for(tuning, over, tuning.more_runs)
    needs = f", and a search needs {FEWEST_RUNS}" if has_few else ""
    return End(
        State.FINISHED, f"The hours suffice for {within} runs{needs}: about {more} would do.{_beyond(tuning, more)}"
    )


def _beyond(tuning: Tuning, more: More) -> str:
    """What to do when a forecast is beyond what a search may have; "" when it is not."""
    if tuning.budget_runs + more.runs > MOST_RUNS:
        return f" A search has at most {MOST_RUNS}: measure longer in each run, or on hosts with less noise."
    if (tuning.budget_hours or 0) + more.hours > MOST_HOURS:
        return f" A search has at most {MOST_HOURS} hours: take a shorter workload, or hosts with less noise."
    return ""
