"""Alerts: change points and missing data, what changed there, and what people say about it."""

from __future__ import annotations

from urllib.parse import urlencode

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from experiments.asking.launching.launch import rerun
from experiments.judging.alerts import triage as alerts
from experiments.judging.alerts.causes import causes_text
from experiments.judging.alerts.following import follow_metric
from experiments.judging.alerts.wording import sentence, title, trend_name
from experiments.judging.explaining.why import why_of_alert
from experiments.models import Alert, Member, Role, Team, Trend
from experiments.registry.errors import Forbidden, NotFound, RequestError
from experiments.registry.metrics.own_metrics import metrics_of
from experiments.registry.metrics.vocabulary import label_of
from experiments.registry.teams.access import may_launch_on_all
from frontend.shared.access import TeamRequest, team_view
from frontend.shared.query import id_in
from frontend.shared.refusals import RefusalSaid

ROWS = 50
QUICK = (
    ("Open", alerts.OPEN),
    ("Acknowledged", "acknowledged"),
    ("Expected", "expected"),
    ("Infrastructure", "infra"),
    ("Fixed", "fixed"),
    ("Not a change", "invalid"),
    ("All", ""),
)


@require_safe
@team_view()
def alert_list(request: TeamRequest) -> HttpResponseBase:
    """The alerts of the filter, newest first."""
    given = {name: request.GET.get(name, "") for name in ("state", "metric", "kind")}
    triage = request.GET.get("triage", alerts.OPEN)
    problem, rows, older = "", list[Alert](), None
    try:
        found = alerts.AlertFilter(triage, **given).alerts(request.team)
        rows, older = found.newest_page(id_in(request.GET.get("before", "")), ROWS)
    except RequestError as error:
        problem = error.message
    kept = {name: value for name, value in given.items() if value}
    metrics = metrics_of(request.team.pk)
    context = {
        "rows": [(alert, metrics[alert.trend.metric], _what_changed(alert)) for alert in rows],
        "quick": [(label, urlencode({"triage": value, **kept}), value == triage) for label, value in QUICK],
        "triage": triage,
        "given": given,
        "filtered": bool(kept) or triage != "",
        "problem": problem,
        "metrics": metrics.values(),
        "states": Alert.State.choices,
        "kinds": Alert.Kind.choices,
        "older_query": urlencode({"triage": triage, **kept, "before": older}) if older else "",
    }
    return render(request, "alerts/list.html", context, status=422 if problem else 200)


@require_safe
@team_view()
def alert_page(request: TeamRequest, pk: int) -> HttpResponseBase:
    """One alert: the numbers, the history around it, what differs between its two runs, and its triage."""
    alert = alerts.find_alert(request.team, pk)
    if request.GET.get("part") == "why":
        answer = why_of_alert(alert)
        return render(request, "partials/why.html", {"answers": [answer] if answer else []})
    comparison = alerts.differences(alert)
    same_point = alerts.same_point(alert)
    metrics = metrics_of(request.team.pk, (one.trend.metric for one in (alert, *same_point)))
    series = alert.trend.series
    query = {"series": series.pk, "metric": alert.trend.metric, "recipe": alert.trend.recipe}
    context = {
        "alert": alert,
        "title": title(alert),
        "sentence": sentence(alert),
        "name": trend_name(alert.trend),
        "metric": metrics[alert.trend.metric],
        "comparison": comparison,
        "runs": comparison.runs if comparison else (),
        "points_url": f"{reverse('trend_points', args=[request.team.slug])}?{urlencode(query)}",
        "trend_url": f"{reverse('trends', args=[request.team.slug])}?{urlencode({'series': series.pk})}",
        "same_point": [(other, metrics[other.trend.metric]) for other in same_point],
        "choices": Alert.Triage.choices,
        "members": _members(request.team),
        "reruns": [
            run
            for run in alerts.ends(alert)
            if run.origin == run.Origin.EXECUTED and may_launch_on_all(request.member, run.hosts)
        ],
    }
    return render(request, "alerts/page.html", context)


@require_POST
@team_view(Role.EDITOR)
def triage_alert(request: TeamRequest, pk: int) -> HttpResponseBase:
    """Store the triage state, the owner and the note."""
    alert = alerts.find_alert(request.team, pk)
    chosen = request.POST.get("owner", "")
    owner = _members(request.team).filter(pk=id_in(chosen) or 0).first()
    with RefusalSaid(request):
        if chosen and owner is None:
            raise RequestError("The owner is a member of the team.", field="owner")
        say = alerts.triage_point if request.POST.get("same_point") else alerts.triage
        say(
            request.member,
            alert,
            state=request.POST.get("triage") or None,
            owner=owner,
            unassign="owner" in request.POST and owner is None,
            note=request.POST.get("note"),
        )
        messages.success(request, f"The alert is now: {alert.get_triage_display().lower()}.")
    return redirect("alert", request.team.slug, pk)


@require_POST
@team_view(Role.LAUNCHER)
def rerun_ends(request: TeamRequest, pk: int) -> HttpResponseBase:
    """Queue the runs on both sides of the change once more: do they still differ on the machine as it is now?"""
    alert = alerts.find_alert(request.team, pk)
    launched = []
    for run in alerts.ends(alert):
        try:
            launched.append(rerun(request.member, run))
        except Forbidden:
            raise
        except RequestError as error:
            messages.error(request, f"Run #{run.number}: {error.message}")
    if launched:
        numbers = " and ".join(f"#{run.number}" for run in launched)
        messages.success(request, f"Queued {numbers}. When they agree, the machine or what it runs has changed.")
    return redirect("alert", request.team.slug, pk)


@require_POST
@team_view()
def alert_mails(request: TeamRequest) -> HttpResponseBase:
    """Start or stop mails about new alerts of this team, for oneself."""
    wanted = request.POST.get("mails") == "on"
    if wanted and not request.user.email:
        messages.error(request, "Your account has no mail address; ask who runs this installation to enter one.")
    else:
        Member.objects.filter(pk=request.member.pk).update(mails_alerts=wanted)
        said = f"You get a mail at {request.user.email} for each new alert." if wanted else "You get no mails any more."
        messages.success(request, said)
    return redirect("alerts", request.team.slug)


@require_POST
@team_view(Role.EDITOR)
def expect_level(request: TeamRequest, pk: int) -> HttpResponse:
    """Say that the present level of one trend is as it should be."""
    trend = Trend.objects.filter(series__team=request.team, pk=pk).select_related("series").first()
    if trend is None:
        raise NotFound("There is no such trend.")
    with RefusalSaid(request):
        alerts.expect_level(request.member, trend)
        label = label_of(trend.metric).lower()
        messages.success(request, f"The present level of {label} is expected; the chart shows it as a line.")
    return redirect(f"{reverse('trends', args=[request.team.slug])}?{urlencode({'series': trend.series_id})}")


@require_POST
@team_view(Role.EDITOR)
def follow(request: TeamRequest, metric: str) -> HttpResponse:
    """Watch one of the team's own metrics, or with `off` stop that; then back to the series."""
    off = "off" in request.POST
    with RefusalSaid(request):
        found = follow_metric(request.member, metric, followed=not off)
        what = "no longer watched" if off else "watched: its history is searched for change points"
        messages.success(request, f"{found.name} is {what}.")
    series = id_in(request.POST.get("series", ""))
    query = urlencode({"series": series or "", "metric": metric})
    return redirect(f"{reverse('trends', args=[request.team.slug])}?{query}")


def _what_changed(alert: Alert) -> str:
    return causes_text(alert.causes) if alert.kind == Alert.Kind.CHANGE else ""


def _members(team: Team) -> QuerySet[Member]:
    return Member.objects.filter(team=team).select_related("user").order_by("user__username")
