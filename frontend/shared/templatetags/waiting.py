"""When something will be, as people say it: in about 12 min, in about 1 h 20 min."""

from __future__ import annotations

from datetime import datetime

from django import template
from django.utils import timezone

from experiments.registry.hosts.reservations import clock
from experiments.running.queue.plan import Expected

register = template.Library()
register.filter("clock", clock)

SOON_S = 45
"""Below this an estimate is not worth a number: the dispatcher itself looks every few seconds."""


@register.filter
def about(value_s: float) -> str:
    """A span of time without false exactness: 1 min · 12 min · 1 h 20 min · 2 d 4 h."""
    minutes = max(round(value_s / 60), 1)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes:02d} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if hours else f"{days} d"


@register.filter
def until_about(moment: datetime) -> str:
    """How long it is until then: "1 h 20 min"."""
    return about((moment - timezone.now()).total_seconds())


@register.filter
def starts(expected: Expected) -> str:
    """When a waiting run starts: "starts in about 12 min (3 runs before it)"."""
    before = f" ({expected.runs_before} run{'' if expected.runs_before == 1 else 's'} before it)"
    if expected.starts_at is None:
        return "starts when somebody has put that right"
    in_s = (expected.starts_at - timezone.now()).total_seconds()
    when = "starts in a moment" if in_s < SOON_S else f"starts in about {about(in_s)}"
    return when + (before if expected.runs_before else "")


@register.filter
def starts_in(expected: Expected) -> str:
    """`starts` where there is little room: "in about 12 min"."""
    return starts(expected).partition(" (")[0].removeprefix("starts ")
