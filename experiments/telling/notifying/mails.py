"""Which mails a member wants of a team, each by the member's own choice."""

from __future__ import annotations

from collections.abc import Mapping

from experiments.models import Member
from experiments.registry.errors import RequestError

CHOICES = (
    ("mails_verdicts", "An experiment reached its verdict"),
    ("mails_failed_runs", "A run failed or was lost"),
)
"""The member's field and what it says. Mails about alerts are chosen on the page of alerts."""


def choose(member: Member, wanted: Mapping[str, bool]) -> None:
    """Set the choices. RequestError when there is no address to send to."""
    if any(wanted.values()) and not member.user.email:
        raise RequestError("Your account has no mail address; an administrator can add one.")
    Member.objects.filter(pk=member.pk).update(**{field: wanted[field] for field, _ in CHOICES})


def change_choices(member: Member, wanted: Mapping[str, bool]) -> Member:
    """Set the named fields only, those about alerts as well; the member as it is then. RequestError as `choose`."""
    if any(wanted.values()) and not member.user.email:
        raise RequestError("Your account has no mail address; an administrator can add one.")
    Member.objects.filter(pk=member.pk).update(**wanted)
    changed: Member = Member.objects.select_related("team", "user").get(pk=member.pk)
    return changed
