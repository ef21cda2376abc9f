"""The sites of the installation: which there are, and their names, descriptions and limits; for its staff only."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from experiments.models import Site
from experiments.registry.errors import RequestError
from experiments.registry.hosts import sites as registry
from experiments.registry.teams.audit import record
from frontend.pages.sites.forms import ChangedSiteForm, SiteForm
from frontend.shared.access import TeamRequest, team_view
from frontend.shared.refusals import RefusalSaid, refuse


def _of_staff(view: Callable[[TeamRequest], HttpResponseBase]) -> Callable[[TeamRequest], HttpResponseBase]:
    """For everybody else there is no such page."""

    @wraps(view)
    def looked_at(request: TeamRequest) -> HttpResponseBase:
        if not request.user.is_staff:
            raise Http404("No such page.")
        return view(request)

    return looked_at


@require_safe
@team_view()
@_of_staff
def sites(request: TeamRequest) -> HttpResponseBase:
    """All sites, each with its form, and one for another."""
    return _page(request)


@require_POST
@team_view()
@_of_staff
def add_site(request: TeamRequest) -> HttpResponseBase:
    """Another site; a worker has to be started there."""
    form = SiteForm(request.POST)
    if form.is_valid():
        try:
            with transaction.atomic():
                site = registry.add_site(**form.cleaned_data)
                record(request.member, "site.add", f"site {site.name}", after=form.cleaned_data)
        except RequestError as error:
            refuse(form, error)
        else:
            messages.success(request, f"The site {site.name} is there. Start a worker at it.")
            return redirect("sites", request.team.slug)
    return _page(request, added=form, status=422)


@require_POST
@team_view()
@_of_staff
def change_site(request: TeamRequest) -> HttpResponseBase:
    """Another description or limit."""
    site = Site.objects.filter(name=request.POST.get("name", "")[:40].replace("\0", "")).first()
    if site is None:
        raise Http404("No such site.")
    form = ChangedSiteForm(site, request.POST)
    if form.is_valid():
        said = {name: form.cleaned_data[name] for name in ("description", "most_live_runs")}
        before = {name: getattr(site, name) for name in said}
        try:
            with transaction.atomic():
                registry.change_site(site.name, **said)
                record(request.member, "site.change", f"site {site.name}", before=before, after=said)
        except RequestError as error:
            refuse(form, error)
        else:
            messages.success(request, f"The site {site.name} is changed.")
            return redirect("sites", request.team.slug)
    return _page(request, changed=form, status=422)


@require_POST
@team_view()
@_of_staff
def remove_site(request: TeamRequest) -> HttpResponseBase:
    """Forget a site that no host is at."""
    name = request.POST.get("name", "").replace("\0", "")
    with RefusalSaid(request), transaction.atomic():
        registry.remove_site(name)
        record(request.member, "site.remove", f"site {name}", before={"name": name})
        messages.success(request, f"The site {name} is removed.")
    return redirect("sites", request.team.slug)


def _page(
    request: TeamRequest, *, added: SiteForm | None = None, changed: ChangedSiteForm | None = None, status: int = 200
) -> HttpResponse:
    shown = [
        (site, changed if changed and changed["name"].value() == site.name else ChangedSiteForm(site))
        for site in registry.all_sites()
    ]
    return render(request, "sites/page.html", {"sites": shown, "form": added or SiteForm()}, status=status)
