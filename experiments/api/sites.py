"""Sites: where hosts may be, and whether somebody works there."""

from __future__ import annotations

from django.http import HttpRequest
from ninja import Router
from pydantic import BaseModel, Field

from experiments.api.plumbing.auth import READ, member_of
from experiments.api.plumbing.paging import paged
from experiments.models import Host
from experiments.registry.database_clock import database_now
from experiments.registry.hosts.sites import all_sites
from experiments.running.queue.workers import manned_sites

router = Router(auth=READ, tags=["hosts"])


class SiteOut(BaseModel):
    name: str = Field(description="What `site` of a host says")
    description: str
    keys_stay: bool = Field(
        description="Its workers fetch runs over HTTPS and have the hosts' keys; the database has none of them"
    )
    has_worker: bool = Field(description="Whether a worker that takes the team's runs is there now; they wait for one")
    hosts: int = Field(description="Hosts of the team that are at it")


@router.get("", response=list[SiteOut])
@paged
def list_sites(request: HttpRequest) -> list[SiteOut]:
    """Those besides the central one, by name. An operator adds them."""
    team = member_of(request).team
    manned = manned_sites(team, database_now())
    there = list(Host.objects.for_team(team).filter(site__isnull=False).values_list("site__name", flat=True))
    return [
        SiteOut(
            name=site.name,
            description=site.description,
            keys_stay=site.keys_stay,
            has_worker=site.name in manned,
            hosts=there.count(site.name),
        )
        for site in all_sites()
    ]
