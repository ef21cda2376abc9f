"""Alert rules: the list with what broke them, one that is changed."""

from __future__ import annotations

from dataclasses import asdict

from django.contrib import messages
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from experiments.judging.alerts.own_rules import condition, scope
from experiments.judging.alerts.saving_rules import (
    change_rule,
    create_rule,
    delete_rule,
    find_rule,
    rules_of,
    wanted_of,
)
from experiments.models import AlertRule, BrokenRule, Role
from experiments.registry.errors import Forbidden, RequestError
from frontend.pages.alert_rules.forms import RuleForm
from frontend.shared.access import TeamRequest, team_view
from frontend.shared.refusals import refuse

NEWEST = 50


@require_http_methods(["GET", "POST"])
@team_view()
def rule_list(request: TeamRequest) -> HttpResponseBase:
    """The rules and what broke them. POST makes one."""
    if request.method == "GET":
        return _page(request, RuleForm(request.team))
    form = RuleForm(request.team, request.POST)
    if form.is_valid():
        try:
            made = create_rule(request.member, form.wanted())
        except Forbidden:
            raise
        except RequestError as error:
            refuse(form, error)
        else:
            messages.success(request, f"The rule {made.name} looks at what ends from now on.")
            return redirect("alert_rules", request.team.slug)
    return _page(request, form, status=422)


@require_http_methods(["GET", "POST"])
@team_view(role=Role.EDITOR)
def rule(request: TeamRequest, rule_id: int) -> HttpResponseBase:
    """One rule in its form. POST changes it."""
    found = find_rule(request.team, rule_id)
    if request.method == "GET":
        return _page(request, RuleForm(request.team, initial=asdict(wanted_of(found))), found)
    form = RuleForm(request.team, request.POST)
    if form.is_valid():
        try:
            change_rule(request.member, found, form.wanted())
        except RequestError as error:
            refuse(form, error)
        else:
            messages.success(request, "Saved.")
            return redirect("alert_rules", request.team.slug)
    return _page(request, form, find_rule(request.team, rule_id), status=422)


@require_POST
@team_view(role=Role.EDITOR)
def rule_delete(request: TeamRequest, rule_id: int) -> HttpResponse:
    """Delete it with what it found."""
    found = find_rule(request.team, rule_id)
    delete_rule(request.member, found)
    messages.success(request, f"The rule {found.name} is deleted.")
    return redirect("alert_rules", request.team.slug)


def _page(request: TeamRequest, form: RuleForm, edited: AlertRule | None = None, *, status: int = 200) -> HttpResponse:
    broken = BrokenRule.objects.filter(rule__team=request.team).select_related("rule", "run", "experiment")
    context = {
        "form": form,
        "edited": edited,
        "rules": [(one, condition(one), scope(one)) for one in rules_of(request.team)],
        "broken": broken.filter(run__trashed_at=None, experiment__trashed_at=None).order_by("-pk")[:NEWEST],
    }
    return render(request, "alert_rules/page.html", context, status=status)
