"""Templates of links to other tools, of a team and of a host: what may stand in one, and one filled in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from urllib.parse import quote, urlsplit

from django.db import transaction

from experiments.models import Member, Role, Team
from experiments.registry.errors import RequestError
from experiments.registry.teams.access import require
from experiments.registry.teams.audit import record

MOST_TEMPLATES = 20
MAX_NAME = 60
MAX_URL = 2000
FIELD = "link_templates"

OF_THE_RUN = {
    "from_ms": "when the run started, in milliseconds since 1970 (Grafana)",
    "to_ms": "when it ended, or now",
    "from_s": "the same in seconds",
    "to_s": "the same in seconds",
    "from_iso": "the same as 2026-11-20T21:04:05.250Z (Kibana)",
    "to_iso": "the same as 2026-11-20T21:09:05.250Z",
    "run": "the run's number",
    "team": "the team's short name",
    "experiment": "the experiment's number",
    "application": "the application's name",
    "recipe": "the recipe's name",
    "workload": "the workload's name",
}
OF_THE_MEASUREMENT = {
    "measured_from_ms": "when its measured load began",
    "measured_to_ms": "when that ended",
    "measured_from_s": "the same in seconds",
    "measured_to_s": "the same in seconds",
    "measured_from_iso": "the same as 2026-11-20T21:05:05.250Z",
    "measured_to_iso": "the same as 2026-11-20T21:08:05.250Z",
}
OF_A_HOST = {
    "host": "the host's name; a link of the team that has it is shown for each host of the run",
    "address": "where BenchHub logs in to the host",
    "role": "the host's part in the run: sut, driver, driver-2 or the role of a member",
}
PLACEHOLDERS: Mapping[str, str] = {**OF_THE_RUN, **OF_THE_MEASUREMENT, **OF_A_HOST}
"""What may stand between { and } in a template, and what it becomes."""

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_MAY_STAND = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)


@dataclass(frozen=True)
class LinkTemplate:
    """A link's name and its address with placeholders."""

    name: str
    url: str

    @property
    def placeholders(self) -> frozenset[str]:
        return frozenset(_PLACEHOLDER.findall(self.url))

    def filled(self, values: Mapping[str, str]) -> str | None:
        """The address, each value quoted; None when one of its placeholders has no value here."""
        if not self.placeholders <= values.keys():
            return None
        return _PLACEHOLDER.sub(lambda found: quote(values[found[1]], safe=""), self.url)


def templates_of(stored: Iterable[Mapping[str, str]]) -> tuple[LinkTemplate, ...]:
    """What a team's or a host's column holds."""
    return tuple(LinkTemplate(one["name"], one["url"]) for one in stored)


def check_templates(given: Iterable[Mapping[str, str]]) -> list[dict[str, str]]:
    """The templates as they are stored, else RequestError (field `link_templates`) that says what may stand in one."""
    found = [LinkTemplate(" ".join(one["name"].split()), one["url"].strip()) for one in given]
    if len(found) > MOST_TEMPLATES:
        raise RequestError(f"There are at most {MOST_TEMPLATES} link templates.", field=FIELD)
    seen = set[str]()
    for one in found:
        if not one.name or len(one.name) > MAX_NAME or not one.name.isprintable() or "=" in one.name:
            raise RequestError(
                f"A link has a name of 1 to {MAX_NAME} printable characters without =, not {one.name[:MAX_NAME]!r}.",
                field=FIELD,
            )
        if one.name in seen:
            raise RequestError(f"Two links are named {one.name}.", field=FIELD)
        seen.add(one.name)
        if why := _wrong_with(one.url):
            raise RequestError(f"The link {one.name}: {why}", field=FIELD)
    return [asdict(one) for one in found]


@transaction.atomic
def set_team_links(member: Member, given: Iterable[Mapping[str, str]]) -> None:
    """Other link templates of the team. For admins; audited."""
    require(member, Role.ADMIN)
    wanted = check_templates(given)
    team = Team.objects.select_for_update(no_key=True).get(pk=member.team_id)
    before = team.link_templates
    if wanted != before:
        team.link_templates = wanted
        team.save(update_fields=["link_templates"])
        record(member, "team.links", f"team {team.slug}", before={FIELD: before}, after={FIELD: wanted})
    member.team = team


def _wrong_with(url: str) -> str:
    """What is wrong with a template, in a sentence; "" when nothing is."""
    if len(url) > MAX_URL or not url.isascii() or not url.isprintable() or " " in url:
        return f"a URL has at most {MAX_URL} printable ASCII characters and no blank."
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        return f"this is no URL: {error}."
    if parts.scheme not in ("http", "https") or not host:
        return "give a URL that begins with https:// or http:// and a host."
    if parts.username is not None or parts.password is not None:
        return "give a URL without a user and a password: everybody in the team sees it."
    if "{" in parts.netloc or "}" in parts.netloc:
        return "a placeholder stands behind the name of the host, not in it."
    unknown = [name for name in _PLACEHOLDER.findall(url) if name not in PLACEHOLDERS]
    if unknown:
        return f"there is no placeholder {{{unknown[0][:40]}}}. These may stand there: {_MAY_STAND}."
    if "{" in (left := _PLACEHOLDER.sub("", url)) or "}" in left:
        return f"write a brace that begins no placeholder as %7B or %7D. These may stand there: {_MAY_STAND}."
    return ""
