"""Invitations: an admin's side under Settings, and the page that the link leads to."""

from __future__ import annotations

from allauth.account.adapter import get_adapter
from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from experiments.models import Invitation, Role
from experiments.registry.errors import Conflict, NotFound, RequestError
from experiments.registry.teams.invitations import accept, find, invite, resend, revoke_invitation, team_joined_by
from frontend.pages.team.forms import InvitationForm
from frontend.pages.team.members import members_page
from frontend.shared.access import TeamRequest, team_view
from frontend.shared.refusals import refuse

INVITATION = "invitation"
"""Where the session keeps the link's text until the person has an account."""


@never_cache
@require_POST
@team_view(role=Role.ADMIN)
def invite_member(request: TeamRequest) -> HttpResponseBase:
    """Ask somebody in. A link that is handed over by hand is shown in this answer alone."""
    form = InvitationForm(request.POST)
    if form.is_valid():
        try:
            asked = invite(request.member, form.cleaned_data["role"], form.cleaned_data["email"])
        except RequestError as error:
            refuse(form, error)
        else:
            return members_page(request, asked=asked)
    return members_page(request, invitation_form=form, status=422)


@never_cache
@require_POST
@team_view(role=Role.ADMIN)
def invitation_change(request: TeamRequest, pk: int) -> HttpResponseBase:
    """A new link (`resend`), or the end of the invitation (`revoke`)."""
    invitation = Invitation.objects.for_team(request.team).filter(pk=pk).first()
    if invitation is None:
        raise NotFound("There is no such invitation.")
    try:
        if "revoke" in request.POST:
            revoke_invitation(request.member, invitation)
            messages.success(request, "The invitation is revoked; its link leads nowhere now.")
        else:
            return members_page(request, asked=resend(request.member, invitation))
    except Conflict as error:
        messages.error(request, error.message)
    return redirect("settings", request.team.slug)


@never_cache
@require_http_methods(["GET", "POST"])
def invitation(request: HttpRequest, text: str) -> HttpResponseBase:
    """Where the link leads: join with the account that is signed in, or sign in, or make an account."""
    found = find(text)
    if found is None:
        joined = team_joined_by(request.user, text)
        if joined is not None:
            return redirect("overview", joined.slug)
        return render(request, "team/invitation_gone.html", status=404)
    if request.method == "POST" and request.user.is_authenticated:
        try:
            member = accept(request.user, text)
        except RequestError as error:
            messages.info(request, error.message)
            return redirect("home")
        messages.success(request, f"Welcome to {member.team.name}.")
        return redirect("overview", member.team.slug)
    if not request.user.is_authenticated:
        request.session[INVITATION] = text
        if found.email:  # who opened the link has read the mail: the address is theirs
            get_adapter().stash_verified_email(request, found.email)
    context = {"invitation": found, "here": request.path, "for_another": _is_for_another(found, request)}
    return render(request, "team/invitation.html", context)


def _is_for_another(invitation: Invitation, request: HttpRequest) -> bool:
    """Whether it was mailed to another address than that of who is signed in."""
    user = request.user
    return bool(invitation.email and user.is_authenticated and user.email.lower() != invitation.email.lower())
