"""Hardware profiles: the same facts are the same profile."""

from __future__ import annotations

from datetime import datetime

from django.http import HttpRequest
from ninja import Router
from pydantic import BaseModel

from experiments.api.plumbing.auth import READ, member_of
from experiments.api.plumbing.paging import paged
from experiments.models import HardwareProfile
from experiments.registry.errors import NotFound

router = Router(auth=READ, tags=["profiles"])


class ProfileOut(BaseModel):
    digest: str
    created_at: datetime
    hosts: list[str]
    facts: dict[str, str]

    @classmethod
    def of(cls, profile: HardwareProfile) -> ProfileOut:
        return cls(
            digest=profile.digest,
            created_at=profile.created_at,
            hosts=sorted(host.name for host in profile.hosts.all()),
            facts=profile.facts,
        )


@router.get("", response=list[ProfileOut])
@paged
def list_profiles(request: HttpRequest) -> list[ProfileOut]:
    """The profiles of the team, the newest first, with the hosts that show them now."""
    profiles = HardwareProfile.objects.for_team(member_of(request).team).prefetch_related("hosts").order_by("-id")
    return [ProfileOut.of(profile) for profile in profiles[:200]]


@router.get("/{digest}", response=ProfileOut)
def get_profile(request: HttpRequest, digest: str) -> ProfileOut:
    """One profile by its digest."""
    found = HardwareProfile.objects.for_team(member_of(request).team).filter(digest=digest).first()
    if found is None:
        raise NotFound("There is no such profile.")
    return ProfileOut.of(found)
