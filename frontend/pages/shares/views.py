"""Sharing as the team sees it: make a link, list them, revoke one."""

from __future__ import annotations

from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from experiments.models import Role, ShareLink
from experiments.registry.errors import Forbidden, NotFound, RequestError
from experiments.telling.sharing.links import revoke_link, share
from experiments.telling.sharing.subjects import freeze
from frontend.pages.shares.forms import ShareForm, subject_in
from frontend.shared.access import TeamRequest, team_view
from frontend.shared.query import id_in

ROWS = 50


@never_cache
@require_http_methods(["GET", "POST"])
@team_view(Role.EDITOR)
def new_share(request: TeamRequest) -> HttpResponseBase:
    """What would be shown, and how long; POST makes the link, which stands in this answer alone."""
    form = ShareForm(request.member, request.POST or None)
    context: dict[str, object] = {"form": form, "back": _back(request)}
    status = 200
    try:
        subject = subject_in(request.GET)
        if request.method == "POST" and form.is_valid():
            made = share(request.member, subject, days=form.chosen_days())
            url = request.build_absolute_uri(reverse("shared_page", args=[made.token]))
            return render(request, "shares/made.html", {**context, "link": made.link, "url": url})
        status = 422 if form.errors else 200
        context["frozen"] = freeze(request.team, subject)
    except (Forbidden, NotFound):
        raise
    except RequestError as error:
        context["error"], status = error, 422
    return render(request, "shares/new.html", context, status=status)


@require_safe
@team_view()
def shares(request: TeamRequest) -> HttpResponseBase:
    """The team's links, newest first: what, who, until when, how often opened."""
    found = ShareLink.objects.for_team(request.team).select_related("created_by").defer("sheet")
    rows, older = found.newest_page(id_in(request.GET.get("before", "")), ROWS)
    context = {"tab": "shares", "links": rows, "older_query": f"before={older}" if older else ""}
    return render(request, "shares/list.html", context)


@require_POST
@team_view(Role.EDITOR)
def share_revoke(request: TeamRequest, pk: int) -> HttpResponseBase:
    """End a link at once."""
    link = revoke_link(request.member, pk)
    messages.success(request, f"The link to {link.subject} is revoked; whoever opens it sees that it does not work.")
    return redirect("shares", request.team.slug)


def _back(request: TeamRequest) -> str:
    """The page of what is shared."""
    slug, given = request.team.slug, request.GET
    number, experiment = id_in(given.get("runs", "")), id_in(given.get("experiment", ""))
    if given.get("kind") == "run" and number is not None:
        return reverse("run", args=[slug, number])
    if given.get("kind") == "experiment" and experiment is not None:
        return reverse("experiment_report", args=[slug, experiment])
    if given.get("kind") == "scaling" and experiment is not None:
        return reverse("scaling", args=[slug, experiment])
    for kind in ("search", "bisection"):
        if given.get("kind") == kind and (inquiry := id_in(given.get(kind, ""))) is not None:
            return reverse(kind, args=[slug, inquiry])
    if given.get("kind") == "comparison":
        return f"{reverse('compare', args=[slug])}?{given.urlencode()}"
    if given.get("kind") == "trend":
        kept = {name: given[name] for name in ("series", "recipe", "from", "to") if given.get(name)}
        return f"{reverse('trends', args=[slug])}?{urlencode(kept)}"
    return reverse("overview", args=[slug])
