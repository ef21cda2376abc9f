"""The limits of the validity checks: shown with their reasons, set by admins."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from experiments.judging.evidence.thresholds import change_thresholds, thresholds_of
from experiments.models import Role
from experiments.registry.errors import Forbidden, RequestError
from frontend.pages.thresholds.forms import ThresholdsForm
from frontend.shared.access import TeamRequest, team_view
from frontend.shared.refusals import refuse


@never_cache
@require_http_methods(["GET", "POST"])
@team_view(role=Role.ADMIN)
def thresholds(request: TeamRequest) -> HttpResponseBase:
    """Every limit with its default and the reason for it. POST stores them; `defaults` takes all back."""
    values = thresholds_of(request.team)
    form = ThresholdsForm(values, request.POST or None)
    if request.method == "POST" and ("defaults" in request.POST or form.is_valid()):
        try:
            back = "defaults" in request.POST
            change_thresholds(request.member, dict.fromkeys(form.fields) if back else form.changes())
        except Forbidden:
            raise
        except RequestError as error:
            refuse(form, error)
        else:
            messages.success(request, "The thresholds count for runs that end from now on.")
            return redirect("thresholds", request.team.slug)
    context = {"tab": "thresholds", "form": form, "rows": list(form.rows()), "changed": values.changed()}
    return render(request, "thresholds/page.html", context, status=422 if form.errors else 200)
