"""The limits of the validity checks and of histories: shown with their reasons, set by admins."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from experiments.judging.alerts.limits import change_limits, limits_in, limits_set
from experiments.judging.comparing.history import series_of
from experiments.judging.evidence.thresholds import change_thresholds, thresholds_of
from experiments.models import Role
from experiments.registry.errors import Forbidden, RequestError
from experiments.registry.metrics.own_metrics import metrics_of
from frontend.pages.thresholds.forms import HistoryLimitsForm, ThresholdsForm
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


@never_cache
@require_http_methods(["GET", "POST"])
@team_view(role=Role.ADMIN)
def history_limits(request: TeamRequest) -> HttpResponseBase:
    """The limits of the histories of a series, a metric or both, with where each was set. POST stores them."""
    series = series_of(request.team)
    wanted = request.GET.get("series", "")
    chosen = next((one for one in series if str(one.pk) == wanted), None)
    metrics = metrics_of(request.team.pk)
    metric = request.GET.get("metric", "")
    if (wanted and chosen is None) or (metric and metric not in metrics):
        raise Http404  # else the limits of a wider part would be shown, and changed
    is_part = bool(chosen or metric)
    found = limits_in(request.team, chosen, metric)
    stored = limits_set(request.team)
    here = next((dict(one.values) for one in stored if (one.series, one.metric) == (chosen, metric)), {})
    form = HistoryLimitsForm(found, here, request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        try:
            change_limits(request.member, form.changes(), series=chosen, metric=metric)
        except Forbidden:
            raise
        except RequestError as error:
            refuse(form, error)
        else:
            messages.success(request, "The limits count from the next run on.")
            return redirect(request.get_full_path())
    context = {
        "tab": "thresholds",
        "form": form,
        "rows": list(form.rows()) if is_part else [],
        "series": series,
        "chosen": chosen,
        "metrics": metrics.values(),
        "metric": metric,
        "stored": stored,
    }
    return render(request, "thresholds/history.html", context, status=422 if form.errors else 200)
