"""What can happen that somebody wants to be told, and one such happening in a form that every channel can show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.conf import settings

RUN_FINISHED = "run.finished"
VERDICT_REACHED = "verdict.reached"
ALERT_RAISED = "alert.raised"
RULE_BROKEN = "rule.broken"
HOST_QUARANTINED = "host.quarantined"
SCHEDULE_SKIPPED = "schedule.skipped"
SCHEDULE_FAILED = "schedule.failed"
TEST = "webhook.test"

EVENTS: Mapping[str, str] = {
    RUN_FINISHED: "A run finished",
    VERDICT_REACHED: "An experiment reached its verdict",
    ALERT_RAISED: "An alert was raised",
    RULE_BROKEN: "A rule of the team was broken",
    HOST_QUARANTINED: "A host was taken out of service",
    SCHEDULE_SKIPPED: "A schedule skipped a time",
    SCHEDULE_FAILED: "A schedule could not launch",
}
"""What a webhook can ask for, in words; `webhook.test` goes out when somebody presses the button."""


@dataclass(frozen=True)
class Happening:
    """`path` is the page below the team's address; `data` the figures and names, as JSON.

    `began_at` and `ended_at`: when it was, where that is not the moment at which it is told.
    """

    event: str
    title: str
    sentence: str
    path: str
    data: Mapping[str, Any] = field(default_factory=dict)
    began_at: datetime | None = None
    ended_at: datetime | None = None

    def url(self, team_slug: str) -> str:
        return f"{settings.BENCHHUB_URL}/t/{team_slug}/{self.path}"
