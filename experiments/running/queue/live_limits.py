"""How many runs of a team, and at a site, may be live at the same time; who is at the limit holds up nobody else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from django.conf import settings
from django.db.models import Count

from experiments.models import CENTRAL, Run, Site, Team
from experiments.registry.hosts.sites import said


@dataclass(frozen=True)
class LiveLimits:
    """Live runs of teams (by id) and at sites (by name), and how many each of them may have."""

    of_team: Mapping[int, int]
    of_site: Mapping[str, int]
    live_of_team: Mapping[int, int]
    live_at_site: Mapping[str, int]

    def most_of_team(self, team_id: int) -> int:
        return self.of_team[team_id]

    def most_at_site(self, site: str) -> int:
        return self.of_site.get(site, settings.BENCHHUB_SITE_LIVE_RUNS)

    def team_is_full(self, team_id: int) -> bool:
        return self.live_of_team.get(team_id, 0) >= self.most_of_team(team_id)

    def site_is_full(self, site: str) -> bool:
        return self.live_at_site.get(site, 0) >= self.most_at_site(site)

    def reason(self, team_id: int, team_name: str, site: str) -> str:
        """Why no further run of the team starts at the site, in a sentence; "" when one may."""
        if self.team_is_full(team_id):
            return f"Team {team_name} has {_runs(self.live_of_team.get(team_id, 0))}, its limit."
        if self.site_is_full(site):
            name = said(site)
            return f"{name[0].upper()}{name[1:]} has {_runs(self.live_at_site.get(site, 0))}, its limit."
        return ""


def live_limits(team_ids: Collection[int]) -> LiveLimits:
    """What these teams and all sites may have, and have: three queries."""
    rows = Run.objects.filter(state__in=Run.ACTIVE).values_list("team", "sut__site__name").order_by()
    of_teams: Counter[int] = Counter()
    at_sites: Counter[str] = Counter()
    for team_id, site, count in rows.annotate(runs=Count("pk")):
        of_teams[team_id] += count
        at_sites[site or CENTRAL] += count
    return LiveLimits(
        of_team=dict(Team.objects.filter(pk__in=team_ids).values_list("pk", "quota_live_runs")),
        of_site={site.name: site.most_live_runs for site in Site.objects.all() if site.most_live_runs is not None},
        live_of_team=of_teams,
        live_at_site=at_sites,
    )


def _runs(count: int) -> str:
    return "1 live run" if count == 1 else f"{count} live runs"
