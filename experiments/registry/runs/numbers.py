"""Runs are numbered per team, without gaps that anybody could wonder about."""

from __future__ import annotations

from django.db import transaction
from django.db.models import F

from experiments.models import Team


def reserve_numbers(team: Team, count: int) -> int:
    """Reserve `count` run numbers of the team and return the first."""
    mine = Team.objects.filter(pk=team.pk)
    with transaction.atomic():  # the update locks the row, so what is read then is the caller's own
        mine.update(next_run_number=F("next_run_number") + count)
        return mine.values_list("next_run_number", flat=True).get() - count
