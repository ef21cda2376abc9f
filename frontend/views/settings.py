"""Settings of a team: members, API tokens, audit, demo data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.contrib import messages
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from experiments.demo.records import delete_demo
from experiments.errors import Forbidden, NotFound, RequestError
from experiments.models import AuditEntry, Role, Run, Token
from experiments.teams.members import add_member, remove_member, set_role
from experiments.teams.tokens import issue, revoke
from frontend.access import TeamRequest, team_view
from frontend.forms.launching import refuse
from frontend.forms.settings import MemberForm, TokenForm
from frontend.query import id_in
from frontend.views.hosts import member_of

AUDIT_ROWS = 50


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
            return _members_page(request, MemberForm(), {"added": added, "password": password})
    return _members_page(request, form, {}, status=422 if form.errors else 200)


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
    found = Token.objects.for_team(request.team).select_related("created_by").order_by("-id")
    if request.member.role != Role.ADMIN:
        found = found.filter(created_by=request.user)
    context = {"tab": "tokens", "form": form, "tokens": found, "secret": secret, "now": timezone.now()}
    return render(request, "settings/tokens.html", context, status=422 if form.errors else 200)


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


@require_safe
@team_view(role=Role.ADMIN)
def audit(request: TeamRequest) -> HttpResponseBase:
    """Who changed what, newest first, keyset paged by id."""
    found = AuditEntry.objects.for_team(request.team).select_related("actor").order_by("-id")
    before = id_in(request.GET.get("before", ""))
    if before is not None:
        found = found.filter(pk__lt=before)
    rows = list(found[: AUDIT_ROWS + 1])
    more = len(rows) > AUDIT_ROWS
    rows = rows[:AUDIT_ROWS]
    context = {
        "tab": "audit",
        "entries": [(entry, list(_changes(entry))) for entry in rows],
        "older_query": f"before={rows[-1].pk}" if more else "",
    }
    return render(request, "settings/audit.html", context)


@require_POST
@team_view(role=Role.ADMIN)
def demo_delete(request: TeamRequest) -> HttpResponseBase:
    """Delete the made-up history; what really ran stays."""
    count = delete_demo(request.member)
    messages.success(request, f"The demo history is deleted: {count} runs.")
    return redirect("settings", request.team.slug)


def _members_page(request: TeamRequest, form: MemberForm, context: dict[str, Any], status: int = 200) -> HttpResponse:
    context |= {
        "tab": "members",
        "form": form,
        "members": request.team.members.select_related("user").order_by("user__username"),
        "roles": Role.choices,
        "has_demo": Run.objects.for_team(request.team).filter(is_demo=True).exists(),
    }
    return render(request, "settings/members.html", context, status=status)


def _changes(entry: AuditEntry) -> Iterator[tuple[str, str, str]]:
    """(what, before, after) of the values that changed, short enough for a row."""
    before, after = entry.before or {}, entry.after or {}
    for key in dict.fromkeys([*before, *after]):
        old, new = before.get(key), after.get(key)
        if old != new:
            yield key, "" if old is None else str(old)[:200], "" if new is None else str(new)[:200]
