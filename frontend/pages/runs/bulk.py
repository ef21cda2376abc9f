"""What is done to the runs that are ticked in the list."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.urls import reverse
from django.views.decorators.http import require_POST

from experiments.asking.launching import bulk
from experiments.keeping.retention.trash import trash_runs
from experiments.models import Run
from experiments.registry.errors import RequestError
from experiments.telling.run_list.saved_views import view_query
from frontend.shared.access import TeamRequest, team_view
from frontend.shared.refusals import RefusalSaid

MAX_DIGITS = 9
UNDONE_BY = {"archive": "unarchive", "unarchive": "archive", "tag": "untag", "untag": "tag"}


@require_POST
@team_view()
def bulk_runs(request: TeamRequest) -> HttpResponse:
    """Compare, tag, untag, archive, unarchive, delete or rerun; then back to the same view, with a way to undo it."""
    numbers = [int(word) for word in request.POST.getlist("runs") if word.isdecimal() and len(word) <= MAX_DIGITS]
    action = request.POST.get("action", "")
    if action == "compare":
        chosen = ",".join(str(number) for number in sorted(set(numbers)))
        return redirect(f"{reverse('compare', args=[request.team.slug])}?runs={chosen}")
    tags = request.POST.get("tags", "").replace(",", " ").split()
    with RefusalSaid(request):
        said, undoable = _do(request, action, numbers, tags)
        _tell(request, action, said, undoable, tags)
    return redirect(f"{reverse('runs', args=[request.team.slug])}?{_kept(request)}")


def _do(request: TeamRequest, action: str, numbers: list[int], tags: list[str]) -> tuple[str, list[Run]]:
    """What was done in a sentence, and the runs of which it can be undone."""
    member = request.member
    match action:
        case "tag":
            changed, done = bulk.tag_runs(member, numbers, tags), f"tagged {' '.join(tags)}"
        case "untag":
            changed, done = bulk.untag_runs(member, numbers, tags), f"freed of the tag {' '.join(tags)}"
        case "archive":
            changed, done = bulk.archive_runs(member, numbers), "archived"
        case "unarchive":
            changed, done = bulk.unarchive_runs(member, numbers), "taken out of the archive"
        case "rerun":
            again = bulk.rerun_runs(member, numbers)
            last = f" to #{again[-1].number}" if len(again) > 1 else ""
            return f"{_count(again)} queued again, as #{again[0].number}{last}.", []
        case "delete":
            return f"{_count(trash_runs(member, numbers))} moved to the trash; Settings, Trash has them.", []
        case _:
            raise RequestError("Choose what to do: compare, tag, untag, archive, delete or run again.", field="action")
    return f"{_count(changed)} {done}." if changed else "Nothing to change: the chosen runs are so already.", changed


def _tell(request: TeamRequest, action: str, said: str, changed: list[Run], tags: list[str]) -> None:
    """Say what was done. Of several tags one run may have had some before, so that is not offered to be undone."""
    undo = UNDONE_BY.get(action) if changed and len(tags) <= 1 else None
    context = {"said": said, "undo": undo, "runs": changed, "tags": " ".join(tags), "back": _kept(request)}
    messages.success(request, render_to_string("runs/_done.html", context, request=request))


def _kept(request: TeamRequest) -> str:
    """The query string of the view that the runs were ticked in."""
    back = request.POST.get("back", "")
    try:
        view_query(back)
    except RequestError:
        return ""
    return QueryDict(back).urlencode()


def _count(runs: list[Run]) -> str:
    return f"Run #{runs[0].number}" if len(runs) == 1 else f"{len(runs)} runs"
