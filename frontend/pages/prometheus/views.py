"""Settings > Prometheus: what the team's Prometheus servers are asked after each run."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from experiments.asking.prometheus import sources
from experiments.asking.prometheus.queries import queries_of
from experiments.asking.prometheus.trying import Tried, try_source
from experiments.models import PrometheusSource, Role
from experiments.registry.errors import Forbidden, RequestError
from frontend.pages.prometheus.forms import SourceForms
from frontend.shared.access import TeamRequest, team_view
from frontend.shared.refusals import RefusalSaid


@never_cache
@require_http_methods(["GET", "POST"])
@team_view()
def source_list(request: TeamRequest) -> HttpResponseBase:
    """The team's sources. POST makes one."""
    is_admin = request.member.role == Role.ADMIN
    if request.method == "GET":
        return _list(request, SourceForms() if is_admin else None)
    forms = SourceForms(request.POST)
    if forms.is_valid():
        try:
            made = sources.create_source(request.member, forms.wanted())
        except Forbidden:
            raise
        except RequestError as error:
            forms.refuse(error)
        else:
            messages.success(request, f"{made.name} is asked after each run from now on. Try it.")
            return redirect("prometheus_source", request.team.slug, made.pk)
    return _list(request, forms if is_admin else None, status=422 if is_admin else 403)


@never_cache
@require_http_methods(["GET", "POST"])
@team_view(role=Role.ADMIN)
def source(request: TeamRequest, source_id: int) -> HttpResponseBase:
    """One source with its queries. POST changes it."""
    found = sources.find_source(request.member, source_id)
    if request.method == "GET":
        return _page(request, found, SourceForms(source=found))
    forms = SourceForms(request.POST, found)
    if forms.is_valid():
        try:
            sources.change_source(request.member, found, forms.wanted())
        except RequestError as error:
            forms.refuse(error)
        else:
            messages.success(request, "Saved.")
            return redirect("prometheus_source", request.team.slug, source_id)
    return _page(request, found, forms, status=422)


@never_cache
@require_POST
@team_view(role=Role.ADMIN)
def source_action(request: TeamRequest, source_id: int) -> HttpResponseBase:
    """`do`: try (what came is shown in this answer) or delete."""
    found = sources.find_source(request.member, source_id)
    wanted = request.POST.get("do", "")
    if wanted == "delete":
        sources.delete_source(request.member, found)
        messages.success(request, f"The source {found.name} is deleted; the channels of runs stay.")
        return redirect("prometheus_sources", request.team.slug)
    if wanted == "try":
        with RefusalSaid(request):
            tried = try_source(request.member, found, request.POST.get("host", ""))
            return _page(request, found, SourceForms(source=found), tried=tried)
    return redirect("prometheus_source", request.team.slug, source_id)


def _list(request: TeamRequest, forms: SourceForms | None, *, status: int = 200) -> HttpResponse:
    found = [(one, queries_of(one.queries)) for one in sources.sources_of(request.team)]
    context = {"tab": "prometheus", "forms": forms, "sources": found}
    return render(request, "prometheus/list.html", context, status=status)


def _page(
    request: TeamRequest,
    found: PrometheusSource,
    forms: SourceForms,
    *,
    tried: list[Tried] | None = None,
    status: int = 200,
) -> HttpResponse:
    context = {
        "tab": "prometheus",
        "source": found,
        "forms": forms,
        "tried": tried,
        "hosts": request.team.hosts.order_by("name").values_list("name", flat=True),
    }
    return render(request, "prometheus/page.html", context, status=status)
