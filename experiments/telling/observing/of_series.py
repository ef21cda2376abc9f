"""Annotations of trends: changes of level, data that stopped coming, and the notes of people."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Q
from django.db.models.functions import Coalesce

from experiments.judging.alerts.wording import sentence, title
from experiments.models import Alert, Annotation, Team
from experiments.registry.runs.windows import unix_ms
from experiments.telling.observing.mark import Mark, mark

MOST_ALERTS = 1000
MOST_NOTES = 1000


def level_changes(team: Team, start: datetime, end: datetime, of_runs: Q) -> list[Mark]:
    """Confirmed and suspected changes at the first run of the new level; missing data when that was noticed."""
    moment = Coalesce("run_after__finished_at", "found_at")
    alerts = Alert.objects.for_team(team).annotate(moment=moment).filter(of_runs, moment__range=(start, end))
    shown = alerts.select_related("trend__series", "run_before", "run_after").order_by("-moment").distinct()
    found = []
    for alert in shown[:MOST_ALERTS]:
        tags = ["benchhub", "alert", alert.seen, alert.trend.metric, "worse" if alert.worse else ""]
        page = f"/t/{team.slug}/alerts/{alert.pk}/"
        found.append(mark(unix_ms(alert.moment), title(alert), sentence(alert), tags, page))
    return found


def notes_of_people(team: Team, start: datetime, end: datetime, of_runs: Q) -> list[Mark]:
    """What members wrote on trends and on the timelines of runs."""
    notes = Annotation.objects.for_team(team).filter(of_runs, at__range=(start, end))
    shown = notes.select_related("author", "run", "series").order_by("-at").distinct()
    found = []
    for note in shown[:MOST_NOTES]:
        of = f"run #{note.run.number}" if note.run else note.series.title
        who = note.author.get_username() if note.author else "somebody"
        page = (
            f"/t/{team.slug}/runs/{note.run.number}/" if note.run else f"/t/{team.slug}/trends/?series={note.series.pk}"
        )
        tags = ["benchhub", "note", f"run:{note.run.number}" if note.run else ""]
        found.append(mark(unix_ms(note.at), f"Note on {of}", f"{note.text} ({who})", tags, page))
    return found
