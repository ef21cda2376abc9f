"""Settings of a team: members, services, API tokens, demo data."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from experiments.keeping.demo.records import delete_demo
from experiments.models import Role, Run, Token
from experiments.registry.errors import Forbidden, NotFound, RequestError
from experiments.registry.teams.invitations import open_invitations
from experiments.registry.teams.members import add_member, add_service, remove_member, set_role
from experiments.registry.teams.tokens import issue, revoke
from frontend.pages.team.forms import InvitationForm, MemberForm, ServiceForm, TokenForm
from frontend.shared.access import TeamRequest, team_view
from frontend.shared.lookups import member_of
from frontend.shared.refusals import refuse


@never_cache
@require_http_methods(["GET", "POST"])
@team_view()
def members(request: TeamRequest) -> HttpResponseBase:
    """The team's members. POST adds one; a new account's password is shown in this answer alone."""
    form = MemberForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            added, password = add_member(request.member, form.cleaned_data["username"], form.cleaned_data["role"])
        except Forbidden:
            raise
        except RequestError as error:
            refuse(form, error)
        else:
            return members_page(request, added=added, password=password)
    return members_page(request, form=form, status=422 if form.errors else 200)


@require_POST
@team_view(role=Role.ADMIN)
def service_new(request: TeamRequest) -> HttpResponseBase:
    """An identity of the team for tokens that stay when people go."""
    form = ServiceForm(request.POST)
    if form.is_valid():
        try:
            service = add_service(request.member, **form.cleaned_data)
        except RequestError as error:
            refuse(form, error)
        else:
            messages.success(request, f"{service.user} is there; make it a token under API tokens.")
            return redirect("settings", request.team.slug)
    return members_page(request, service_form=form, status=422)


@require_POST
@team_view(role=Role.ADMIN)
def member_change(request: TeamRequest, pk: int) -> HttpResponseBase:
    """Another role, or `remove`."""
    other = member_of(request, str(pk))
    try:
        if "remove" in request.POST:
            remove_member(request.member, other)
            messages.success(request, f"{other.user} left the team.")
        else:
            set_role(request.member, other, request.POST.get("role", ""))
            messages.success(request, f"{other.user} has a new role.")
    except RequestError as error:
        messages.error(request, error.message)
    return redirect("overview" if other.pk == request.member.pk else "settings", request.team.slug)


@never_cache
@require_http_methods(["GET", "POST"])
@team_view()
def tokens(request: TeamRequest) -> HttpResponseBase:
    """API tokens: an admin sees all, others their own. POST issues one, shown in this answer alone."""
    form = TokenForm(request.member, request.POST or None)
    secret = ""
    if request.method == "POST" and form.is_valid():
        try:
            _, secret = issue(request.member, **form.cleaned_data)
            form = TokenForm(request.member)
        except RequestError as error:
            refuse(form, error)
    found = Token.objects.for_team(request.team).select_related("owner").order_by("-id")
    if request.member.role != Role.ADMIN:
        found = found.filter(owner=request.user)
    context = {"tab": "tokens", "form": form, "tokens": found, "secret": secret, "now": timezone.now()}
    return render(request, "team/tokens.html", context, status=422 if form.errors else 200)


@require_POST
@team_view()
def token_revoke(request: TeamRequest, pk: int) -> HttpResponseBase:
    """End a token at once."""
    token = Token.objects.for_team(request.team).filter(pk=pk).first()
    if token is None:
        raise NotFound("There is no such token.")
    revoke(request.member, token)
    messages.success(request, f"The token {token.name} is revoked.")
    return redirect("tokens", request.team.slug)


@require_POST
@team_view(role=Role.ADMIN)
def demo_delete(request: TeamRequest) -> HttpResponseBase:
    """Delete the made-up history; what really ran stays."""
    count = delete_demo(request.member)
    messages.success(request, f"The demo history is deleted: {count} runs.")
    return redirect("settings", request.team.slug)


def members_page(
    request: TeamRequest,
    *,
    status: int = 200,
    form: MemberForm | None = None,
    invitation_form: InvitationForm | None = None,
    service_form: ServiceForm | None = None,
    **shown_once: Any,
) -> HttpResponse:
    """The members and what an admin does about them. `shown_once`: what the action that led here has to show."""
    context = shown_once | {
        "tab": "members",
        "form": form or MemberForm(),
        "invitation_form": invitation_form or InvitationForm(),
        "service_form": service_form or ServiceForm(),
        "members": request.team.members.select_related("user").order_by("is_service", "user__username"),
        "invitations": open_invitations(request.member) if request.member.role == Role.ADMIN else (),
        "roles": Role.choices,
        "has_demo": Run.objects.for_team(request.team).filter(is_demo=True).exists(),
    }
    return render(request, "team/members.html", context, status=status)
