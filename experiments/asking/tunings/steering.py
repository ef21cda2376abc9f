"""What people do with a tuning search that was started: pause, go on, more budget, leave out a region, reduce it."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction

from experiments.analysis.tuning.proposing import spread
from experiments.analysis.tuning.trials import FEWEST_RUNS
from experiments.asking.inquiries.engine import State
from experiments.asking.tunings.live import TUNINGS, Outcome
from experiments.asking.tunings.more_budget import adds_runs
from experiments.asking.tunings.plan import MOST_HOURS, MOST_RUNS
from experiments.asking.tunings.reading import hours_with_reduction
from experiments.asking.tunings.space import SpaceDocument, space_of, with_forbidden
from experiments.asking.tunings.trials import budget_runs, count_searched, hours_are_used_up, runs_in_hours, trials_over
from experiments.models import Member, Role, Tuning, TuningTrial
from experiments.registry.documents.contents import content_of
from experiments.registry.errors import Conflict, RequestError
from experiments.registry.teams import audit
from experiments.registry.teams.access import require

OPEN_AGAIN = (State.FINISHED, State.STOPPED)
"""What has no answer, or was stopped, may be taken up again; what a person cancelled is over."""


def pause(member: Member, tuning: Tuning) -> None:
    """Launch no further trial; the one under way goes on to its end. Conflict when there is nothing to pause."""
    with transaction.atomic():
        locked = _held(member, tuning)
        if locked.state != State.RUNNING or locked.paused:
            raise Conflict("Only a tuning search that is running can be paused.")
        locked.paused, locked.confirms_at = True, None  # it has no end of its own
        locked.sentence = ""  # it waits for a person alone
        locked.save(update_fields=["paused", "confirms_at", "sentence"])
        audit.record(member, "tuning.pause", f"tuning {locked.name}")
    tuning.refresh_from_db()


def resume(member: Member, tuning: Tuning) -> None:
    """Go on with the trial that would have followed, also of a search that was stopped, once its cause is mended.

    Conflict when it is neither paused nor stopped. RequestError, of the field `hours`, when it has none left.
    """
    with transaction.atomic():
        locked = _held(member, tuning)
        if locked.state == State.STOPPED:
            over = trials_over(locked)
            if locked.outcome != Outcome.BETTER and hours_are_used_up(locked, over) and len(over) < FEWEST_RUNS:
                raise RequestError("Its hours are used up: give more hours, then it goes on.", field="hours")
            _open_again(locked)
        elif locked.state != State.RUNNING or not locked.paused:
            raise Conflict("This tuning search is neither paused nor stopped.")
        locked.paused = False
        audit.record(member, "tuning.resume", f"tuning {locked.name}")
        TUNINGS.take_up(locked)
    tuning.refresh_from_db()


def add_budget(member: Member, tuning: Tuning, *, runs: int = 0, hours: float = 0.0) -> None:
    """Give it more; one that ended without a gain, or was stopped, goes on with it.

    Conflict when it has its answer. RequestError names what else it needs, where this alone would add no run.
    """
    if runs < 0 or hours < 0 or not (runs or hours):
        raise RequestError("Give runs, hours or both.", field="runs")
    with transaction.atomic():
        locked = _held(member, tuning)
        open_again = locked.state in OPEN_AGAIN and locked.outcome != Outcome.BETTER
        if locked.state != State.RUNNING and not open_again:
            raise Conflict("This tuning search has its answer or was ended; start another one.")
        if locked.budget_runs + runs > MOST_RUNS:
            raise RequestError(f"A search has at most {MOST_RUNS} runs.", field="runs")
        if hours and locked.budget_hours is None:
            raise RequestError("This search has no limit of hours.", field="hours")
        if locked.budget_hours is not None and locked.budget_hours + hours > MOST_HOURS:
            raise RequestError(f"A search has at most {MOST_HOURS} hours.", field="hours")
        over, before = trials_over(locked), {"runs": locked.budget_runs, "hours": locked.budget_hours}
        allowed = budget_runs(locked, over)
        locked.budget_runs += runs
        locked.budget_hours = None if locked.budget_hours is None else locked.budget_hours + hours
        after = {"runs": locked.budget_runs, "hours": locked.budget_hours}
        if locked.outcome != Outcome.BETTER:
            _check_adds(locked, over, runs, hours)
            _look(locked, over, allowed)
        audit.record(member, "tuning.budget", f"tuning {locked.name}", before=before, after=after)
        if open_again:
            _open_again(locked)
            TUNINGS.take_up(locked)
        else:
            locked.save(update_fields=["budget_runs", "budget_hours", "looks", "looked_at"])
    tuning.refresh_from_db()


def _check_adds(tuning: Tuning, over: Sequence[TuningTrial], runs: int, hours: float) -> None:
    """RequestError when of runs and hours only that was added of which there was enough."""
    within = runs_in_hours(tuning, over)
    if not hours and within is not None and within <= tuning.budget_runs - runs:
        said = f"Its hours suffice for {within} runs, and it had {tuning.budget_runs - runs}: give hours, too."
        raise RequestError(said, field="hours")
    if not runs and count_searched(over) >= tuning.budget_runs:
        raise RequestError(f"Its {tuning.budget_runs} runs are used up: give runs, too.", field="runs")


def _look(tuning: Tuning, over: Sequence[TuningTrial], allowed: int) -> None:
    """Pairs of finalists that everybody could see get further ones now, so they are judged at a smaller level.

    More budget once more, before there is any other pair, is no further look; nor is what suffices for no pair beyond
    the runs that were `allowed` before.
    """
    confirmed = (one for one in over if one.purpose == TuningTrial.Purpose.CONFIRM)
    seen = any(one.result == TuningTrial.Result.OK and one.position >= tuning.looked_at for one in confirmed)
    if seen and adds_runs(tuning, over, allowed):
        tuning.looks, tuning.looked_at = tuning.looks + 1, len(over)


def leave_out(member: Member, tuning: Tuning, mixture: str) -> None:
    """Try nothing more in this region, and recommend nothing of it. `mixture` as in the space: "workers > 4".

    What was measured there stays to be seen. RequestError when the default lies in it, or nothing else is left.
    """
    with transaction.atomic():
        locked = _held(member, tuning)
        if locked.state != State.RUNNING or locked.outcome:
            raise Conflict("Only a tuning search that is still looking for its answer can leave out a region.")
        recipe = content_of(locked.recipe)
        document = with_forbidden(SpaceDocument.model_validate(locked.space), recipe, mixture)
        space = space_of(document, recipe)
        if space.is_forbidden(locked.default):
            raise RequestError("The default lies in this region, and all is compared with it.", field="mixture")
        if not spread(space, locked.default, 1, locked.seed):
            raise RequestError("Nothing would be left to try.", field="mixture")
        locked.space = document.model_dump(mode="json")
        locked.save(update_fields=["space"])
        locked.trials.filter(run=None, result=TuningTrial.Result.NONE).delete()  # planned anew, without the region
        audit.record(member, "tuning.leave_out", f"tuning {locked.name}", after={"mixture": mixture.strip()})
    tuning.refresh_from_db()


def find_smallest(member: Member, tuning: Tuning) -> None:
    """Look which parameters of the winner may go back to their defaults. Conflict without a winner, or when known.

    Its runs come on top of the budget, so hours that do not suffice for them grow.
    """
    with transaction.atomic():
        locked = _held(member, tuning)
        if locked.state != State.FINISHED or locked.winner is None or locked.smallest is not None:
            raise Conflict("The smallest recipe is looked for once, of a configuration that is confirmed to be better.")
        locked.reduces = True
        before = {"hours": locked.budget_hours}
        locked.budget_hours = hours_with_reduction(locked)
        _open_again(locked)
        audit.record(
            member, "tuning.reduce", f"tuning {locked.name}", before=before, after={"hours": locked.budget_hours}
        )
        TUNINGS.take_up(locked)
    tuning.refresh_from_db()


def _held(member: Member, tuning: Tuning) -> Tuning:
    require(member, Role.LAUNCHER)
    return TUNINGS.locked(tuning.pk)


def _open_again(tuning: Tuning) -> None:
    """It runs again, without an answer unless that is a gain. Invalid runs so far end nothing any more."""
    tuning.state, tuning.sentence, tuning.finished_at = State.RUNNING, "", None
    tuning.trials.filter(run=None, result=TuningTrial.Result.NONE).delete()  # what ended it may ask for others
    tuning.taken_up_at = tuning.trials.exclude(result=TuningTrial.Result.NONE).count()
    if tuning.outcome != Outcome.BETTER:
        tuning.outcome, tuning.more_runs = Outcome.NONE, None
