"""Runs are numbered per team, without gaps that anybody could wonder about."""

from __future__ import annotations

from django.db.models import F

from experiments.models import Team


def reserve_numbers(team: Team, count: int) -> int:
    """Reserve `count` run numbers of the team and return the first."""
    Team.objects.filter(pk=team.pk).update(next_run_number=F("next_run_number") + count)
    return Team.objects.values_list("next_run_number", flat=True).get(pk=team.pk) - count
