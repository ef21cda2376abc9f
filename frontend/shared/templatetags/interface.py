"""The pieces that pages are made of: icons, badges, navigation, the queue pill."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from django import template
from django.http import HttpRequest
from django.templatetags.static import static
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from experiments.judging.alerts.triage import open_count
from experiments.models import Member, Role, Run, Team
from frontend.shared.badges import BADGES, Badge
from frontend.shared.document_kinds import kind_label

register = template.Library()
register.filter("kind_label", kind_label)


@dataclass(frozen=True)
class Section:
    """An entry of the left navigation; `name` is the URL name and the path's first word."""

    name: str
    label: str
    icon: str


NAVIGATION = (
    (
        Section("overview", "Overview", "home"),
        Section("runs", "Runs", "play"),
        Section("experiments", "Experiments", "flask"),
        Section("trends", "Trends", "trend"),
        Section("alerts", "Alerts", "bell"),
    ),
    (
        Section("recipes", "Recipes", "sliders"),
        Section("workloads", "Workloads", "gauge"),
        Section("applications", "Applications", "box"),
        Section("library", "Library", "file"),
    ),
    (
        Section("hosts", "Hosts", "server"),
        Section("queue", "Queue", "queue"),
        Section("settings", "Settings", "gear"),
    ),
)


@register.simple_tag
@cache  # a list of a thousand rows has two of them in each, and there are few different ones
def icon(name: str, label: str = "") -> SafeString:
    """An icon of the sprite; without a label it is decoration and hidden from screen readers."""
    href = f"{static('icons.svg')}#{name}"
    if label:
        return format_html('<svg class="icon" role="img" aria-label="{}"><use href="{}"></use></svg>', label, href)
    return format_html('<svg class="icon" aria-hidden="true"><use href="{}"></use></svg>', href)


STATE_ICONS = {"done": ("check", "done"), "now": ("spinner", "now"), "failed": ("cross", "failed")}


@register.simple_tag
def state_icon(state: str) -> SafeString:
    """The icon of a phase that is done, under way, failed or still to come."""
    return icon(*STATE_ICONS.get(state, ("dot", "to do")))


@register.simple_tag
def badge(kind: str, value: str, title: str = "") -> SafeString:
    """State, outcome, validity, restore, verdict, host or result as icon + text + colour."""
    found = BADGES[kind].get(value) or Badge("neutral", "dot", value.replace("_", " ") or "—")
    return format_html(
        '<span class="badge badge-{}"{}>{}{}</span>',
        found.tone,
        format_html(' title="{}"', title) if title else "",
        icon(found.icon),
        found.text,
    )


@register.simple_tag
def run_badge(run: Run) -> SafeString:
    """The one badge of a run: its state while it is live, then its outcome."""
    return badge("outcome", run.outcome) if run.state == Run.State.FINISHED else badge("state", run.state)


@register.simple_tag
def ago(moment: datetime | str | None) -> SafeString | str:
    """A time, or its ISO text, that app.js keeps up to date as "5 min ago"; the exact time is the title."""
    if not moment:
        return "—"
    if isinstance(moment, str):
        moment = datetime.fromisoformat(moment)
    local = timezone.localtime(moment)
    return format_html(
        '<time datetime="{}" title="{}" data-ago>{}</time>',
        local.isoformat(),
        local.strftime("%Y-%m-%d %H:%M:%S %Z"),
        local.strftime("%Y-%m-%d %H:%M"),
    )


@register.inclusion_tag("partials/navigation.html", takes_context=True)
def navigation(context: dict[str, Any]) -> dict[str, Any]:
    request: HttpRequest = context["request"]
    slug = context["request"].team.slug
    current = request.path.removeprefix(f"/t/{slug}/").split("/")[0] or "overview"
    counts = {"alerts": open_count(context["request"].team)}
    return {
        "groups": [
            [
                {
                    "section": section,
                    "href": reverse(section.name, args=[slug]),
                    "current": section.name == current,
                    "count": counts.get(section.name, 0),
                }
                for section in group
            ]
            for group in NAVIGATION
        ]
    }


@register.inclusion_tag("partials/queue_pill.html")
def queue_pill(team: Team) -> dict[str, Any]:
    """How many runs are live and waiting."""
    states = Run.objects.for_team(team).unfinished_by_state()
    waiting = states.pop(Run.State.QUEUED, 0)
    return {"team": team, "running": states.total(), "waiting": waiting}


@register.simple_tag
def teams_of(member: Member) -> list[Team]:
    """The teams that the switcher offers."""
    return list(Team.objects.filter(members__user=member.user_id).order_by("name"))


@register.filter
def may(member: Member, role: str) -> bool:
    """True when the member's role covers `role`: `{% if request.member|may:"launcher" %}`."""
    return Role(member.role).covers(Role(role))


@register.simple_tag
def field_of(mapping: dict[str, Any], key: str) -> Any:
    """`mapping[key]` for a key that the template holds in a variable; None when it is not there."""
    return mapping.get(key)


@register.filter
def nth(values: Any, place: int) -> Any:
    """What stands at this place of a list, counted from 0; None beyond its end."""
    found = list(values)
    return found[place] if place < len(found) else None
