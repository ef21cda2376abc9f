"""Two machines side by side: hosts of the team, and machines that only imported runs tell of."""

from __future__ import annotations

from django.http import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_safe

from experiments.models import HardwareProfile
from experiments.registry.errors import NotFound
from frontend.shared.access import TeamRequest, team_view
from frontend.shared.hardware import side_by_side

MOST_PROFILES = 200


@require_safe
@team_view()
def hardware(request: TeamRequest) -> HttpResponseBase:
    """`?a=DIGEST&b=DIGEST` of two profiles; without them the profiles of the first two machines that differ."""
    found = HardwareProfile.objects.for_team(request.team).prefetch_related("hosts").order_by("-pk")[:MOST_PROFILES]
    # Machines that hosts show now come first; the others are of imported runs, or of earlier days.
    profiles = sorted(found, key=lambda one: (not one.hosts.all(), one.pk))
    by_digest = {profile.digest: profile for profile in profiles}
    chosen = []
    for name, at in (("a", 0), ("b", 1)):
        digest = request.GET.get(name, "")
        if digest and digest not in by_digest:
            raise NotFound("There is no such hardware profile.")
        chosen.append(by_digest[digest] if digest else profiles[min(at, len(profiles) - 1)] if profiles else None)
    left, right = chosen
    context = {
        "profiles": [(one, ", ".join(sorted(host.name for host in one.hosts.all()))) for one in profiles],
        "left": left,
        "right": right,
        "groups": side_by_side(left.facts, right.facts) if left and right else [],
    }
    return render(request, "hardware/page.html", context)
