"""Imports: a report of a load tool becomes a run, a recording of a monitor stands beside the samples of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.contrib import messages
from django.http import Http404, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from experiments.asking.intake.imports import AUTO, Preview, import_reports, preview_of
from experiments.asking.intake.named_results import NamedRun
from experiments.asking.intake.recordings import import_recording
from experiments.asking.intake.several_files import import_files, previews_of
from experiments.models import Role, Run
from experiments.registry.errors import RequestError
from frontend.pages.imports.forms import OutputForm, RecordingForm, ReportForm
from frontend.shared.access import TeamRequest, team_view

MOST_SHOWN = 100
"""Results that a preview lists."""


@dataclass(frozen=True)
class _Shown:
    """What one file would become; the page lists the first of its results."""

    preview: Preview
    file_name: str

    @property
    def results(self) -> Sequence[NamedRun]:
        return self.preview.results[:MOST_SHOWN]


@require_http_methods(["GET", "POST"])
@team_view(role=Role.LAUNCHER)
def import_run(request: TeamRequest) -> HttpResponseBase:
    """The form, and the run that comes of it."""
    form = ReportForm(request.team, request.POST or None, request.FILES or None)
    if request.method == "POST" and form.is_valid():
        files = form.cleaned_data["files"]
        if form.cleaned_data["kind"] == AUTO and not form.cleaned_data["shown_files"]:
            return _preview_of_files(request, form) if files else _preview(request, form)
        try:
            given = form.given()
            runs = import_files(request.member, files, **given) if files else import_reports(request.member, **given)
        except RequestError as error:
            _refuse(form, error)
        else:
            if len(runs) > 1:
                what = f"The {len(files)} files are" if files else "The report is"
                messages.success(request, f"{what} {len(runs)} runs, #{runs[0].number} to #{runs[-1].number}.")
                return redirect("runs", request.team.slug)
            messages.success(request, f"The report is run #{runs[0].number}: {runs[0].validity}.")
            return redirect("run", request.team.slug, runs[0].number)
    status = 422 if request.method == "POST" else 200
    return render(request, "imports/run.html", {"form": form}, status=status)


def _preview(request: TeamRequest, form: ReportForm) -> HttpResponseBase:
    """What would be stored, and the form that stores it; or the form that says why nothing can be."""
    found, preview, refused = form.cleaned_data, None, None
    try:
        preview = preview_of(found["text"], found["file_name"], found["directions"])
    except RequestError as error:
        refused = error
    again = form.with_text(preview.kind if preview else AUTO)
    if refused is not None:
        _refuse(again, refused)
    previews = [_Shown(preview, found["file_name"])] if preview else []
    return _shown(request, again, previews)


def _preview_of_files(request: TeamRequest, form: ReportForm) -> HttpResponseBase:
    """What would be stored of each of several files; or the form that says which of them cannot be."""
    found = form.cleaned_data
    try:
        previews = previews_of(found["files"], found["directions"])
    except RequestError as error:
        _refuse(form, error)
        return _shown(request, form, [])
    pairs = list(zip(found["files"], previews, strict=True))
    again = form.with_files([replace(file, kind=preview.kind) for file, preview in pairs])
    return _shown(request, again, [_Shown(preview, file.name) for file, preview in pairs])


def _shown(request: TeamRequest, form: ReportForm, previews: Sequence[_Shown]) -> HttpResponseBase:
    count = sum(one.preview.count for one in previews)
    context = {"form": form, "previews": previews, "count": count}
    return render(request, "imports/run.html", context, status=200 if previews else 422)


@require_http_methods(["GET", "POST"])
@team_view(role=Role.LAUNCHER)
def add_recording(request: TeamRequest, number: int) -> HttpResponseBase:
    """The form for a finished run, and its charts with the recording in them."""
    run = Run.objects.for_team(request.team).select_related("drivers").filter(number=number).first()
    if run is None:
        raise Http404("No such run.")
    form = RecordingForm(run, request.POST or None, request.FILES or None)
    if request.method == "POST" and form.is_valid():
        try:
            stored = import_recording(request.member, run, **form.given())
        except RequestError as error:
            _refuse(form, error)
        else:
            span = f"from {stored.first_s:,.0f} to {stored.last_s:,.0f} s of the measured time"
            notes = "".join(f" Note: {note}." for note in stored.notes)
            messages.success(request, f"{len(stored.channels)} channels added, {span}.{notes}")
            return redirect("run", request.team.slug, number)
    status = 422 if request.method == "POST" else 200
    return render(request, "imports/recording.html", {"form": form, "run": run}, status=status)


def _refuse(form: OutputForm, error: RequestError) -> None:
    """Show an error at the field that it names."""
    name = "file" if error.field == "text" and form.cleaned_data.get("file") else error.field
    form.add_error(name if name in form.fields else None, error.message)
