"""The log of a run on a page of its own: steps beside it, any part of it by line number, a search."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import render

from experiments.models import Artifact, Run
from experiments.registry.logs.log_files import LogFile, file_of, files_of
from experiments.registry.logs.log_lines import (
    MOST_LINES,
    Found,
    LogLine,
    Outline,
    count_lines,
    find,
    outline_of,
    page_of,
)
from frontend.pages.run_log.log_tree import tree_of
from frontend.shared.access import TeamRequest, team_view
from frontend.shared.lookups import find_run
from frontend.shared.query import id_in

SHOWN_FIRST = 300
BEFORE_IT = 60
"""Lines above the one that was asked for, so that it is seen what led to it."""
PARTS = {"tree": "run_log/_tree.html", "found": "run_log/_found.html"}


@team_view()
def run_log(request: TeamRequest, number: int) -> HttpResponse:
    """The page; `?line=` opens it there, `?file=` shows a file of the run, `?q=` searches, `?part=` is a piece."""
    run = find_run(request, number)
    file = _file(request, run)
    outline = Outline(file.total, ()) if file else outline_of(run)
    text = request.GET.get("q", "").strip()[:200]
    context: dict[str, Any] = {
        "run": run,
        "file": file,
        "outline": outline,
        "tree": [] if file else tree_of(outline, live=run.is_live),
        "q": text,
        "found": _find(run, file, text) if text else None,
    }
    part = request.GET.get("part", "")
    if part in PARTS:
        return render(request, PARTS[part], context)
    first = _first(request, run, outline)
    lines = _lines(run, file, first, SHOWN_FIRST)
    last = lines[-1].number if lines else 0
    context |= {
        "files": files_of(run),
        "lines": lines,
        "first": first,
        "last": last,
        "earlier": max(1, first - SHOWN_FIRST) if first > 1 else None,
        "later": last + 1 if last < outline.total else None,
        "problems": outline.problems,
    }
    return render(request, "run_log/page.html", context)


@team_view()
def run_log_lines(request: TeamRequest, number: int) -> HttpResponse:
    """Lines by number for the page: `after=` (the last one that it has) and `limit=`."""
    run = find_run(request, number)
    file = _file(request, run)
    after = id_in(request.GET.get("after", "")) or 0
    limit = min(id_in(request.GET.get("limit", "")) or MOST_LINES, MOST_LINES)
    return JsonResponse(
        {
            "total": file.total if file else count_lines(run),
            "lines": [
                [line.number, line.when, line.source, line.level, line.text]
                for line in _lines(run, file, after + 1, limit)
            ],
        }
    )


def _file(request: TeamRequest, run: Run) -> LogFile | None:
    asked = id_in(request.GET.get("file", ""))
    if asked is None:
        return None
    try:
        return file_of(run, asked)
    except Artifact.DoesNotExist as error:
        raise Http404("No such file.") from error


def _lines(run: Run, file: LogFile | None, first: int, most: int) -> list[LogLine]:
    return file.page(first, most) if file else page_of(run, first, most)


def _find(run: Run, file: LogFile | None, text: str) -> Found:
    return file.find(text) if file else find(run, text)


def _first(request: TeamRequest, run: Run, outline: Outline) -> int:
    """Where the page opens: at the line asked for, else at what went wrong, at the end of a live run, at the start."""
    asked = id_in(request.GET.get("line", ""))
    if asked is not None:
        return max(1, min(asked, outline.total) - BEFORE_IT)
    if run.is_live:
        return max(1, outline.total - SHOWN_FIRST + 1)
    return max(1, (outline.first_error or 1) - BEFORE_IT)
