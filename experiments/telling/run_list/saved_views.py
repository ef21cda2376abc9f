"""Saved views of the list of runs: a name for a filter, an order and columns; private, or shared with the team."""

from __future__ import annotations

from dataclasses import fields

from django.db import transaction
from django.http import QueryDict

from experiments.models import Member, Role, SavedView, Team
from experiments.registry.errors import Conflict, Forbidden, NotFound, RequestError
from experiments.registry.teams import audit
from experiments.registry.teams.access import require
from experiments.telling.run_list.filters import RunFilter
from experiments.telling.run_list.order import sort_key
from experiments.telling.run_list.pairs import join_pairs

MAX_NAME = 60
MAX_QUERY_CHARS = 4000
MAX_VIEWS = 100
PASSING = ("cursor", "view")
"""What stands in an address and belongs to no view: the page of the list, and which view it is."""
VIEW_NAMES = {field.name for field in fields(RunFilter)} - {"conditions"} | {"sort", "columns"}
"""What a view may say, besides conditions such as `throughput_rps__gte`."""


def views_of(member: Member) -> list[SavedView]:
    """The views that the member sees: the own ones and the shared ones, by name."""
    return list(SavedView.objects.seen_by(member.team, member.user).select_related("owner"))


def find_view(member: Member, view_id: int) -> SavedView:
    """NotFound for a view that the member does not see."""
    found: SavedView | None = SavedView.objects.seen_by(member.team, member.user).filter(pk=view_id).first()
    if found is None:
        raise NotFound("There is no such view.")
    return found


def save_view(member: Member, name: str, query: str, *, shared: bool = False) -> SavedView:
    """A new view; one of the same name of the same person is replaced. Sharing needs the role launcher."""
    if shared:
        require(member, Role.LAUNCHER)
    name, query = _name(name), view_query(query)
    with transaction.atomic():
        Team.objects.select_for_update(no_key=True).get(pk=member.team_id)  # one of a name
        own = SavedView.objects.for_team(member.team).filter(owner=member.user)
        found = own.filter(name=name).first()
        if found is None and own.count() >= MAX_VIEWS:
            raise Conflict(f"You have {MAX_VIEWS} views; delete one first.")
        before = _said(found) if found else None
        view = found or SavedView(team=member.team, owner=member.user, name=name)
        view.query, view.shared = query, shared
        view.save()
        _record(member, view, before)
    return view


def change_view(
    member: Member, view: SavedView, *, name: str | None = None, query: str | None = None, shared: bool | None = None
) -> None:
    """Rename a view, give it another filter, or share it; what is left out stays. The owner's, or an admin's, to do."""
    _require_hold(member, view)
    if shared:
        require(member, Role.LAUNCHER)
    with transaction.atomic():
        _hold(member, view)
        before = _said(view)
        if name is not None:
            view.name = _name(name)
            same = SavedView.objects.for_team(view.team).filter(owner=view.owner_id, name=view.name)
            if same.exclude(pk=view.pk).exists():
                raise Conflict(f"There is a view {view.name!r} already.", field="name")
        if query is not None:
            view.query = view_query(query)
        if shared is not None:
            view.shared = shared
        view.save()
        _record(member, view, before)
        if shared is False:
            # Whoever had it as default no longer sees it.
            Member.objects.filter(default_view=view).exclude(user=view.owner_id).update(default_view=None)


def delete_view(member: Member, view: SavedView) -> None:
    _require_hold(member, view)
    with transaction.atomic():
        _hold(member, view)
        if view.shared:
            audit.record(member, "view.delete", f"view {view.name}", before=_said(view))
        view.delete()


def open_with(member: Member, view: SavedView | None) -> None:
    """Which view the list of runs opens with for this member; None = every run."""
    with transaction.atomic():
        if view is not None:
            _hold(member, view)
        member.default_view = view
        member.save(update_fields=["default_view"])


def view_query(query: str) -> str:
    """The query string as a view keeps it. RequestError when the list would refuse it."""
    if len(query) > MAX_QUERY_CHARS:
        raise RequestError(f"A view's filter has at most {MAX_QUERY_CHARS} characters.", field="query")
    given = QueryDict(query, mutable=True)
    for name in PASSING:
        given.pop(name, None)
    join_pairs(given)
    RunFilter.from_query({name: str(given[name]) for name in given})
    sort_key(str(given.get("sort", "-number")))
    return given.urlencode()


def check_names(query: str) -> None:
    """RequestError for a name that no list of runs has: a misspelt filter would else list everything."""
    for name in QueryDict(query):
        if name not in (*VIEW_NAMES, *PASSING) and "__" not in name:
            known = ", ".join(sorted(VIEW_NAMES))
            raise RequestError(f"The list of runs has no {name[:60]!r}; known: {known}.", field="query")


def _hold(member: Member, view: SavedView) -> None:
    """Read the view again; nobody else changes a view of the team meanwhile. NotFound when it is gone."""
    Team.objects.select_for_update(no_key=True).get(pk=member.team_id)
    find_view(member, view.pk)
    view.refresh_from_db()


def _require_hold(member: Member, view: SavedView) -> None:
    if view.owner_id != member.user_id and not Role(member.role).covers(Role.ADMIN):
        raise Forbidden(f"The view {view.name} is {view.owner}'s; save one of your own.")


def _name(name: str) -> str:
    name = name.strip()
    if not name or len(name) > MAX_NAME or not name.isprintable():
        raise RequestError(f"A view's name has 1 to {MAX_NAME} printable characters.", field="name")
    return name


def _record(member: Member, view: SavedView, before: dict[str, object] | None) -> None:
    """Only what the team sees is the team's to know."""
    after = _said(view)
    if view.shared or (before or {}).get("shared"):
        audit.record(member, "view.save", f"view {view.name}", before=before, after=after)


def _said(view: SavedView) -> dict[str, object]:
    return {"name": view.name, "query": view.query, "shared": view.shared}
