"""The hardware that a host shows, as profiles over time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from agents.base.errors import ParseError
from agents.facts.described import MAX_CHARS, read_machine
from agents.facts.host import HostFacts
from experiments.models import HardwareProfile, Host, HostProfile, Team
from experiments.registry.database_clock import database_now
from experiments.registry.errors import RequestError


def store_profile(host: Host, digest: str, facts: Mapping[str, str]) -> HardwareProfile:
    """Say that the host shows these facts now: the same facts go on, others begin a new entry of its history.

    A host that goes back to an earlier profile (after a test kernel) gets a new entry, not a longer old one. Call it
    inside a transaction; it leaves the host's other fields, and `host` itself, as they are.
    """
    now = database_now()
    profile, _ = HardwareProfile.objects.get_or_create(
        team_id=host.team_id, digest=digest, defaults={"facts": dict(facts)}
    )
    newest = host.profile_history.first()
    if newest is not None and newest.profile_id == profile.pk:
        HostProfile.objects.filter(pk=newest.pk).update(last_seen_at=now)
    else:
        HostProfile.objects.create(host=host, profile=profile, last_seen_at=now)
    Host.objects.filter(pk=host.pk).update(profile=profile, last_seen_at=now)
    return profile


def read_description(text: str, *, field: str) -> HostFacts | None:
    """A machine that BenchHub cannot log in to, as somebody describes it; None when nothing is said.

    RequestError (the named field) for a text that no command printed.
    """
    if not text.strip():
        return None
    if len(text) > MAX_CHARS:
        raise RequestError(f"A description of a machine has at most {MAX_CHARS:,} characters.", field=field)
    try:
        return read_machine(text)
    except ParseError as error:
        raise RequestError(f"{error.message[0].upper()}{error.message[1:]}.", field=field) from error


def described_profiles(team: Team, machines: Iterable[HostFacts]) -> dict[str, HardwareProfile]:
    """Digest -> profile of machines that are no hosts of the team. Call it inside a transaction."""
    wanted = {one.digest(): one.profile() for one in machines}
    stored = HardwareProfile.objects.filter(team=team, digest__in=wanted)
    found = {one.digest: one for one in stored}
    if wanted.keys() == found.keys():
        return found
    new = [  # in one order, so that nobody waits for each other
        HardwareProfile(team=team, digest=digest, facts=facts)
        for digest, facts in sorted(wanted.items())
        if digest not in found
    ]
    HardwareProfile.objects.bulk_create(new, ignore_conflicts=True)
    return {one.digest: one for one in stored.all()}
