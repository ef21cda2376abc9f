"""What several pages find by a number in their address."""

from __future__ import annotations

from django.http import Http404

from experiments.models import Experiment, Member, Run
from experiments.registry.errors import NotFound
from frontend.shared.access import TeamRequest
from frontend.shared.query import id_in


def find_run(request: TeamRequest, number: int) -> Run:
    """The team's run with its names; another team's is the same 404 as none."""
    run = Run.objects.for_team(request.team).numbered(number)
    if run is None:
        raise Http404("No such run.")
    return run


def find_experiment(request: TeamRequest, experiment_id: int) -> Experiment:
    """The team's experiment; another team's is the same 404 as none."""
    found = Experiment.objects.for_team(request.team).select_related("workload", "created_by").filter(pk=experiment_id)
    experiment: Experiment | None = found.first()
    if experiment is None:
        raise Http404("No such experiment.")
    return experiment


def member_of(request: TeamRequest, pk: str) -> Member:
    """A member of the team by its id. NotFound for another team's."""
    found = request.team.members.select_related("user").filter(pk=id_in(pk) or 0).first()
    if found is None:
        raise NotFound("There is no such member.")
    return found
