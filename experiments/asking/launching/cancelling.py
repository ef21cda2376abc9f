"""Cancelling runs and experiments: what waits ends at once, what is under way when its hosts are as before."""

from __future__ import annotations

from django.db import transaction
from django.db.models.functions import Now

from experiments.models import Experiment, Member, Role, Run
from experiments.models.experiments import OPEN
from experiments.registry.database_clock import database_now
from experiments.registry.errors import Conflict
from experiments.registry.teams import audit
from experiments.registry.teams.access import require
from experiments.running.ending.conclusion import conclude_experiment, run_ended

NEVER_STARTED = "Cancelled before it started; no host was touched."


def cancel_run(member: Member, run: Run) -> None:
    """Ask for the end of a run; its worker stops the load and restores the host. A queued run ends at once."""
    require(member, Role.LAUNCHER)
    with transaction.atomic():
        locked = Run.objects.select_for_update().get(pk=run.pk)
        if locked.state == Run.State.FINISHED:
            raise Conflict(f"Run #{locked.number} is finished already.")
        now = database_now()
        locked.cancel_requested_at = locked.cancel_requested_at or now
        if locked.state == Run.State.QUEUED:
            locked.state, locked.outcome = Run.State.FINISHED, Run.Outcome.CANCELLED
            locked.failure = NEVER_STARTED
            locked.finished_at = now
        locked.save(update_fields=["cancel_requested_at", "state", "outcome", "failure", "finished_at"])
        audit.record(member, "run.cancel", f"run #{locked.number}")
        if locked.state == Run.State.FINISHED:
            run_ended(locked)
    run.refresh_from_db()


def cancel_experiment(member: Member, experiment: Experiment) -> None:
    """Cancel the experiment and every run of it that is not finished. Conflict when it has come to its end already."""
    require(member, Role.LAUNCHER)
    with transaction.atomic():
        locked = hold_experiment(experiment.pk)
        if locked.state not in OPEN:
            raise Conflict(f"This experiment is {locked.get_state_display().lower()} already.")
        # Looked at again: one that ended meanwhile may have queued its retry.
        open_runs = experiment.runs.exclude(state=Run.State.FINISHED)
        cancelled = open_runs.count()
        open_runs.filter(cancel_requested_at=None).update(cancel_requested_at=Now())
        open_runs.filter(state=Run.State.QUEUED).update(
            state=Run.State.FINISHED,
            outcome=Run.Outcome.CANCELLED,
            failure=NEVER_STARTED,
            finished_at=Now(),
        )
        locked.state = Experiment.State.CANCELLED
        locked.save(update_fields=["state"])
        audit.record(member, "experiment.cancel", f"experiment {locked.name}", after={"runs": cancelled})
        conclude_experiment(experiment.pk)
    experiment.refresh_from_db()


def hold_experiment(experiment_id: int) -> Experiment:
    """The experiment, locked after its open runs: whoever ends a run locks them in this order."""
    runs = Run.objects.filter(experiment_id=experiment_id).exclude(state=Run.State.FINISHED)
    list(runs.select_for_update(of=("self",)).order_by("pk").values_list("pk", flat=True))
    locked: Experiment = Experiment.objects.select_for_update(of=("self",)).get(pk=experiment_id)
    return locked
