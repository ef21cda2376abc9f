"""A happening as the text that is sent: documented JSON, a Slack-compatible message, or a mail."""

from __future__ import annotations

import html
import json
from datetime import datetime
from uuid import UUID

from experiments.models import Team, Webhook
from experiments.registry.runs.windows import unix_ms
from experiments.telling.notifying.happenings import Happening

MOST_CHARS = 2500
"""Of a sentence: a Slack section takes 3,000."""


def body_for(webhook: Webhook, happening: Happening, team: Team, *, public_id: UUID, at: datetime) -> str:
    """The body of the request, exactly as it is signed and sent."""
    if webhook.format == Webhook.Format.SLACK:
        return _slack(happening, team)
    if webhook.format == Webhook.Format.GRAFANA:
        return _grafana(happening, team, at)
    payload = {
        "id": str(public_id),
        "event": happening.event,
        "at": at.isoformat(timespec="seconds"),
        "team": team.slug,
        "title": happening.title,
        "sentence": happening.sentence[:MOST_CHARS],
        "url": happening.url(team.slug),
        "data": dict(happening.data),
    }
    return json.dumps(payload, ensure_ascii=False)


def _grafana(happening: Happening, team: Team, at: datetime) -> str:
    """The body of `POST /api/annotations`: a span when its end is known. Grafana shows the link in its text."""
    start_ms = unix_ms(happening.began_at or at)
    ended = {"timeEnd": max(start_ms, unix_ms(happening.ended_at))} if happening.ended_at else {}
    title, said = html.escape(happening.title), html.escape(happening.sentence[:MOST_CHARS])
    link = f'<a href="{html.escape(happening.url(team.slug))}">{title}</a>'
    labels = happening.data.get("labels") or {}
    tags = ["benchhub", happening.event, f"team:{team.slug}", *(f"{key}={value}" for key, value in labels.items())]
    message = {"time": start_ms, **ended, "tags": tags, "text": f"{link}\n{said}"}
    return json.dumps(message, ensure_ascii=False)


def mail_body(happening: Happening, team: Team) -> str:
    return (
        f"{happening.sentence}\n\n{happening.url(team.slug)}\n\n"
        f"You get this because you asked for such mails of {team.name}: {_settings_url(happening, team)}"
    )


def _settings_url(happening: Happening, team: Team) -> str:
    return Happening(happening.event, "", "", "settings/webhooks/").url(team.slug)


def _slack(happening: Happening, team: Team) -> str:
    """Text for the notification, blocks for the channel."""
    title, sentence = _escaped(happening.title), _escaped(happening.sentence[:MOST_CHARS])
    link = f"<{happening.url(team.slug)}|{title}>"
    message = {
        "text": f"{title}: {sentence}",
        "blocks": [
            {"type": "section", "text": {"type": "mrkdwn", "text": f"*{link}*\n{sentence}"}},
            {
                "type": "context",
                "elements": [{"type": "mrkdwn", "text": f"BenchHub · {_escaped(team.name)} · {happening.event}"}],
            },
        ],
    }
    return json.dumps(message, ensure_ascii=False)


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
