"""Runs are numbered per team, without gaps that anybody could wonder about."""

from __future__ import annotations

from django.db import connection

from experiments.models import Team

_RESERVE = "UPDATE experiments_team SET next_run_number = next_run_number + %s WHERE id = %s RETURNING next_run_number"


def reserve_numbers(team: Team, count: int) -> int:
    """Reserve `count` run numbers of the team and return the first."""
    with connection.cursor() as cursor:
        cursor.execute(_RESERVE, (count, team.pk))
        row: tuple[int] = cursor.fetchone()
    return row[0] - count
