"""Saved views of the list of runs: one's own, and those that members share with the team."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from django.conf import settings
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from ninja import Router
from pydantic import BaseModel, Field

from experiments.api.plumbing.auth import LAUNCH, READ, member_of
from experiments.api.plumbing.conditional import CHANGE_EXTRA, READ_EXTRA, insist_on_match, tagged
from experiments.api.plumbing.paging import paged
from experiments.api.shapes import Body, Flag
from experiments.models import Member, SavedView, Team
from experiments.telling.run_list import saved_views
from experiments.telling.run_list.saved_views import MAX_NAME, MAX_QUERY_CHARS

router = Router(auth=READ, tags=["views"])

_QUERY = "The filter, order and columns as in the address of the list: `recipe=limits&validity=valid&sort=-number`"


class ViewOut(BaseModel):
    id: int
    name: str
    query: str = Field(description=_QUERY)
    shared: bool = Field(description="The whole team sees it")
    owner: str
    is_default: bool = Field(description="The list of runs opens with it for you")
    url: str
    changed_at: datetime

    @classmethod
    def of(cls, view: SavedView, member: Member) -> ViewOut:
        list_url = f"{settings.BENCHHUB_URL}/t/{member.team.slug}/runs/"
        return cls(
            id=view.pk,
            name=view.name,
            query=view.query,
            shared=view.shared,
            owner=view.owner.get_username(),
            is_default=member.default_view_id == view.pk,
            url=f"{list_url}?{view.query}{'&' * bool(view.query)}view={view.pk}",
            changed_at=view.changed_at,
        )


class ViewIn(Body):
    name: str = Field(min_length=1, max_length=MAX_NAME)
    query: str = Field("", max_length=MAX_QUERY_CHARS, description=_QUERY)
    shared: Flag = Field(False, description="Needs the role launcher")


class ViewChange(Body):
    name: str | None = Field(None, min_length=1, max_length=MAX_NAME)
    query: str | None = Field(None, max_length=MAX_QUERY_CHARS)
    shared: Flag | None = None
    is_default: Flag | None = None


@router.get("", response=list[ViewOut])
@paged
def list_views(request: HttpRequest) -> list[ViewOut]:
    """Your own views and those that others share with the team, by name."""
    member = member_of(request)
    return [ViewOut.of(view, member) for view in saved_views.views_of(member)]


@router.post("", response={201: ViewOut}, auth=LAUNCH)
def create_view(request: HttpRequest, payload: ViewIn) -> HttpResponse:
    """Save a view under a name; one of the same name of yours is replaced."""
    member = member_of(request)
    saved_views.check_names(payload.query)
    view = saved_views.save_view(member, payload.name, payload.query, shared=payload.shared)
    return tagged(request, ViewOut.of(view, member), 201)


@router.get("/{int:view_id}", response=ViewOut, openapi_extra=READ_EXTRA)
def get_view(request: HttpRequest, view_id: int) -> HttpResponse:
    """One view, with its ETag."""
    member = member_of(request)
    return tagged(request, ViewOut.of(saved_views.find_view(member, view_id), member))


@router.patch("/{int:view_id}", response=ViewOut, auth=LAUNCH, openapi_extra=CHANGE_EXTRA)
def change_view(request: HttpRequest, view_id: int, payload: ViewChange) -> HttpResponse:
    """Change what is named: your own view, or as an admin anybody's. `is_default` is for yourself, of any view."""
    member = member_of(request)
    changes = payload.model_dump(exclude_none=True, exclude={"is_default"})
    saved_views.check_names(payload.query or "")
    with _as_seen(request, view_id) as view:
        if changes:
            saved_views.change_view(member, view, **changes)
        if payload.is_default is not None and payload.is_default != (member.default_view_id == view.pk):
            saved_views.open_with(member, view if payload.is_default else None)
    return tagged(request, ViewOut.of(view, member))


@router.delete("/{int:view_id}", response=ViewOut, auth=LAUNCH, openapi_extra=CHANGE_EXTRA)
def delete_view(request: HttpRequest, view_id: int) -> HttpResponse:
    """Delete a view; its runs stay. Your own, or as an admin anybody's; the answer is what it was."""
    member = member_of(request)
    with _as_seen(request, view_id) as view:
        gone = ViewOut.of(view, member)
        saved_views.delete_view(member, view)
    return tagged(request, gone)


@contextmanager
def _as_seen(request: HttpRequest, view_id: int) -> Iterator[SavedView]:
    """The view for a change in one transaction; nobody else changes a view of the team meanwhile."""
    member = member_of(request)
    with transaction.atomic():
        Team.objects.select_for_update(no_key=True).get(pk=member.team_id)  # the lock of `saved_views`
        view = saved_views.find_view(member, view_id)
        insist_on_match(request, ViewOut.of(view, member))
        yield view
