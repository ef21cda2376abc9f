"""Pause and resume: an experiment that is held starts no further run, and goes on where it was."""

from __future__ import annotations

from django.db import transaction

from experiments.models import Experiment, Member, Role, Run
from experiments.models.experiments import HELD
from experiments.registry.errors import Conflict
from experiments.registry.teams import audit
from experiments.registry.teams.access import require, require_launch_on
from experiments.registry.workers.outbox import announce
from experiments.running.ending.conclusion import conclude_experiment


def pause_experiment(member: Member, experiment: Experiment) -> None:
    """Start none of its queued runs until somebody resumes it; a run that is under way comes to its end."""
    require(member, Role.LAUNCHER)
    with transaction.atomic():
        locked = _locked(experiment)
        if locked.state != Experiment.State.RUNNING:
            raise Conflict(f"This experiment is {locked.get_state_display()}; only a running one can be paused.")
        locked.state, locked.state_reason = Experiment.State.PAUSED, f"Paused by {member.user.get_username()}."
        locked.save(update_fields=["state", "state_reason"])
        audit.record(member, "experiment.pause", f"experiment {locked.name}")
    experiment.refresh_from_db()


def resume_experiment(member: Member, experiment: Experiment) -> None:
    """Go on. Whoever resumes an experiment that its A/A check blocked takes its figures as they are."""
    require(member, Role.LAUNCHER)
    for variant in experiment.variants.select_related("sut", "drivers").prefetch_related("drivers__hosts"):
        require_launch_on(member, variant.sut, *variant.drivers.everyone)
    with transaction.atomic():
        locked = _locked(experiment)
        if locked.state not in HELD:
            raise Conflict(f"This experiment is {locked.get_state_display()}; there is nothing to resume.")
        before = {"state": locked.state, "reason": locked.state_reason}
        locked.state, locked.state_reason = Experiment.State.RUNNING, ""
        locked.save(update_fields=["state", "state_reason"])
        audit.record(member, "experiment.resume", f"experiment {locked.name}", before=before)
        conclude_experiment(locked.pk)  # with no run open, its stop rule says what follows
        waiting = Run.objects.filter(experiment=locked, state=Run.State.QUEUED).order_by("pk").first()
        if waiting is not None:
            announce(waiting)
    experiment.refresh_from_db()


def _locked(experiment: Experiment) -> Experiment:
    found: Experiment = Experiment.objects.select_for_update(of=("self",)).get(pk=experiment.pk)
    return found
