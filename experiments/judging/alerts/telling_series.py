"""Which of a team's series to open first: the one whose history tells something."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import Count, Max, Q

from experiments.models import Alert, Series, Team, Trend

ENOUGH_OCCASIONS = 3
"""From so many times of measuring on a line shows more than two values and the way between them."""


def telling_series(team: Team, series: Sequence[Series]) -> Series | None:
    """Of `series`, the newest first: one with a change that nobody has looked at, else one with a history.

    A series of which no run counts comes last. None when there is no series. One query.
    """
    waiting = Q(
        alerts__kind=Alert.Kind.CHANGE,
        alerts__stands=True,
        alerts__muted=False,
        alerts__triage=Alert.Triage.UNTRIAGED,
    )
    trends = Trend.objects.filter(series__team=team, length__gt=0).order_by().values("series_id")
    known = {
        row["series_id"]: (row["changes"] > 0, min(row["occasions"] or 0, ENOUGH_OCCASIONS))
        for row in trends.annotate(changes=Count("alerts", filter=waiting), occasions=Max("occasions_s__len"))
    }
    return max(series, key=lambda one: known.get(one.pk, (False, 0)), default=None)
