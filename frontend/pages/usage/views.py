"""Settings, Usage: what the team uses of its quotas, and how long it keeps its runs."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from experiments.keeping.retention.policy import forecast, set_retention
from experiments.models import Role
from experiments.registry.errors import Forbidden, RequestError
from experiments.registry.teams.quotas import set_quotas
from experiments.registry.teams.quotas import usage as usage_of
from frontend.pages.usage.forms import QuotaForm, RetentionForm
from frontend.shared.access import TeamRequest, team_view
from frontend.shared.refusals import refuse


@require_safe
@team_view()
def usage(request: TeamRequest) -> HttpResponseBase:
    """The page; `?days=90` counts what a retention of 90 days would take, and changes nothing."""
    form = RetentionForm(request.GET if "days" in request.GET else None)
    foreseen = None
    if form.is_bound and form.is_valid():
        foreseen = forecast(request.team, form.cleaned_data["days"])
    return _page(request, {"retention": form, "forecast": foreseen}, status=422 if form.errors else 200)


@require_POST
@team_view(Role.ADMIN)
def retention(request: TeamRequest) -> HttpResponseBase:
    """Switch retention on with so many days, or off."""
    if "off" in request.POST:
        set_retention(request.member, None)
        messages.success(request, "Runs are kept for ever.")
        return redirect("usage", request.team.slug)
    form = RetentionForm(request.POST)
    if not form.is_valid():
        return _page(request, {"retention": form}, status=422)
    set_retention(request.member, form.cleaned_data["days"])
    messages.success(request, f"Runs are kept for {form.cleaned_data['days']} days; older ones go to the trash hourly.")
    return redirect("usage", request.team.slug)


@require_POST
@team_view()
def quotas(request: TeamRequest) -> HttpResponseBase:
    """Change the team's quotas; for staff."""
    form = QuotaForm(request.team, request.POST)
    if form.is_valid():
        try:
            set_quotas(request.user, request.member, form.values())
        except Forbidden:
            raise
        except RequestError as error:
            refuse(form, error)
        else:
            messages.success(request, "The quotas are changed.")
            return redirect("usage", request.team.slug)
    elif not request.user.is_staff:
        raise Forbidden("Quotas are changed by the staff of this installation.")
    return _page(request, {"quota_form": form}, status=422)


def _page(request: TeamRequest, more: dict[str, Any], status: int = 200) -> HttpResponse:
    kept = request.team.retention_days
    context = {
        "tab": "usage",
        "uses": usage_of(request.team),
        "retention": RetentionForm(initial={"days": kept or 365}),
        "forecast": None,
        "quota_form": QuotaForm(request.team) if request.user.is_staff else None,
        **more,
    }
    return render(request, "usage/page.html", context, status=status)
