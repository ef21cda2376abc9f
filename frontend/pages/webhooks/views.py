"""Settings > Webhooks: the mails that a member wants, and for admins the team's webhooks with their deliveries."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from experiments.models import Role, Webhook
from experiments.registry.errors import Forbidden, RequestError
from experiments.telling.notifying import mails, webhooks
from experiments.telling.notifying.reading import deliveries_of, find_delivery, find_webhook, webhooks_of
from frontend.pages.webhooks.forms import WebhookForm
from frontend.shared.access import TeamRequest, team_view
from frontend.shared.query import id_in
from frontend.shared.refusals import RefusalSaid, refuse

DELIVERIES_SHOWN = 50


@never_cache
@require_http_methods(["GET", "POST"])
@team_view()
def webhook_list(request: TeamRequest) -> HttpResponseBase:
    """POST makes a webhook; its secret is shown in this answer alone."""
    is_admin = request.member.role == Role.ADMIN
    if request.method == "GET":
        return _list(request, WebhookForm() if is_admin else None)
    form = WebhookForm(request.POST)
    if form.is_valid():
        try:
            made, secret = webhooks.create_webhook(request.member, form.wanted())
        except Forbidden:
            raise
        except RequestError as error:
            refuse(form, error)
        else:
            return _page(request, made, secret=secret)
    return _list(request, form if is_admin else None, status=422 if is_admin else 403)


@require_POST
@team_view()
def choose_mails(request: TeamRequest) -> HttpResponse:
    """Which mails one wants of this team."""
    wanted = {field: request.POST.get(field) == "on" for field, _ in mails.CHOICES}
    with RefusalSaid(request):
        mails.choose(request.member, wanted)
        messages.success(request, "Saved.")
    return redirect("webhooks", request.team.slug)


@never_cache
@require_http_methods(["GET", "POST"])
@team_view(role=Role.ADMIN)
def webhook(request: TeamRequest, webhook_id: int) -> HttpResponseBase:
    """One webhook with its deliveries. POST changes it."""
    found = find_webhook(request.member, webhook_id)
    if request.method == "GET":
        return _page(request, found)
    form = WebhookForm(request.POST, stored=found)
    if form.is_valid():
        try:
            webhooks.change_webhook(request.member, found, form.wanted())
        except RequestError as error:
            refuse(form, error)
        else:
            messages.success(request, "Saved.")
            return redirect("webhook", request.team.slug, webhook_id)
    return _page(request, found, form=form, status=422)


@never_cache
@require_POST
@team_view(role=Role.ADMIN)
def webhook_action(request: TeamRequest, webhook_id: int) -> HttpResponseBase:
    """`do`: test, rotate (the new secret is shown in this answer alone) or delete."""
    found = find_webhook(request.member, webhook_id)
    wanted = request.POST.get("do", "")
    if wanted == "rotate":
        return _page(request, found, secret=webhooks.rotate_secret(request.member, found))
    if wanted == "delete":
        webhooks.delete_webhook(request.member, found)
        messages.success(request, f"The webhook {found.name} is deleted.")
        return redirect("webhooks", request.team.slug)
    if wanted == "test":
        webhooks.send_test(request.member, found)
        messages.success(request, "A test message is on its way; look at its delivery below in a moment.")
    return redirect("webhook", request.team.slug, webhook_id)


@require_POST
@team_view(role=Role.ADMIN)
def redeliver(request: TeamRequest, webhook_id: int, delivery_id: int) -> HttpResponse:
    """Send a message again."""
    found = find_delivery(request.member, webhook_id, delivery_id)
    with RefusalSaid(request):
        webhooks.redeliver(request.member, found)
        messages.success(request, "It is sent again.")
    return redirect("webhook", request.team.slug, webhook_id)


def _list(request: TeamRequest, form: WebhookForm | None, *, status: int = 200) -> HttpResponse:
    found = webhooks_of(request.member) if request.member.role == Role.ADMIN else []
    choices = [(field, label, getattr(request.member, field)) for field, label in mails.CHOICES]
    context = {"tab": "webhooks", "form": form, "webhooks": found, "mails": choices}
    return render(request, "webhooks/list.html", context, status=status)


def _page(
    request: TeamRequest, found: Webhook, *, form: WebhookForm | None = None, secret: str = "", status: int = 200
) -> HttpResponse:
    initial: dict[str, Any] = {name: getattr(found, name) for name in WebhookForm.base_fields if name != "token"}
    rows, older = deliveries_of(found).newest_page(id_in(request.GET.get("before", "")), DELIVERIES_SHOWN)
    context = {
        "tab": "webhooks",
        "webhook": found,
        "form": form or WebhookForm(initial=initial, stored=found),
        "secret": secret,
        "deliveries": rows,
        "older_query": f"before={older}" if older else "",
    }
    return render(request, "webhooks/page.html", context, status=status)
