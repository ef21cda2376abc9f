"""Applications, recipes and workloads: lists, versions, what differs, YAML out and archive."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.db.models import Max
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from agents.base.redaction import masked
from agents.drivers.jmeter.driver import Jmeter
from experiments.models import Document, Role, Run
from experiments.registry.documents.contents import content_of
from experiments.registry.documents.versions import archive, diff_versions, to_yaml, unarchive
from experiments.registry.errors import NotFound, RequestError
from frontend.pages.documents.contents import (
    driver_settings,
    example_command,
    parameters_of,
    server_settings,
    steps_of,
    summary_of,
)
from frontend.pages.documents.jmeter_plan import plan_rows
from frontend.shared.access import TeamRequest, team_view
from frontend.shared.document_kinds import KINDS, Kind
from frontend.shared.query import id_in


@require_safe
@team_view()
def document_list(request: TeamRequest, kind: str) -> HttpResponseBase:
    """The newest version of each name, or of each archived one. Three queries, however many there are."""
    of = KINDS[kind]
    documents = of.model.objects.for_team(request.team)
    archived = request.GET.get("archived") == "1"
    names = documents.archived_names() if archived else documents.newest_versions()
    found = list(names.select_related("created_by"))
    last_runs = dict(
        Run.objects.for_team(request.team)
        .filter(**{f"{of.singular}__in": [document.pk for document in found]})
        .order_by()
        .values_list(of.singular)
        .annotate(Max("number"))
    )
    rows = [
        {"document": document, "summary": summary_of(document), "last_run": last_runs.get(document.pk)}
        for document in found
    ]
    others = archived or documents.archived_names().exists()
    context = {"kind": of, "rows": rows, "archived": archived, "has_archive": others}
    return render(request, "documents/list.html", context)


@require_safe
@team_view()
def document_page(request: TeamRequest, kind: str, pk: int) -> HttpResponseBase:
    """One version, readable and as YAML, with all versions of its name."""
    of = KINDS[kind]
    document = get_document(request, of, pk)
    versions = versions_of(document)
    context = {
        "kind": of,
        "document": document,
        "versions": versions,
        "newest": next((version for version in versions if not version.one_off), versions[0]),
        "yaml": to_yaml(document),
        "runs": Run.objects.for_team(request.team)
        .with_names()
        .filter(**{of.singular: document})
        .order_by("-number")[:5],
        "new_run_query": f"{of.singular}={document.pk}",
        **_readable(document),
    }
    return render(request, "documents/page.html", context)


@require_safe
@team_view()
def document_diff(request: TeamRequest, kind: str, pk: int) -> HttpResponseBase:
    """What differs between this version and `?with=<id>`, by default the version before it."""
    of = KINDS[kind]
    document = get_document(request, of, pk)
    versions = versions_of(document)
    other_pk = id_in(request.GET.get("with", ""))
    if other_pk is not None:
        other = get_document(request, of, other_pk)
    else:
        other = next((version for version in versions if version.version < document.version), versions[-1])
    context = {
        "kind": of,
        "document": document,
        "other": other,
        "versions": versions,
        "differences": diff_versions(other, document),
    }
    return render(request, "documents/diff.html", context)


@require_safe
@team_view()
def document_yaml(request: TeamRequest, kind: str, pk: int) -> HttpResponseBase:
    """The body as a YAML file."""
    document = get_document(request, KINDS[kind], pk)
    safe = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "-" for c in document.name)
    return HttpResponse(
        to_yaml(document),
        content_type="application/yaml; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{safe}-v{document.version}.yaml"'},
    )


@require_POST
@team_view(role=Role.EDITOR)
def document_archive(request: TeamRequest, kind: str, pk: int) -> HttpResponseBase:
    """Take every version of the name out of the lists, or put an archived name back."""
    of = KINDS[kind]
    document = get_document(request, of, pk)
    was_archived = document.archived
    try:
        (unarchive if was_archived else archive)(request.member, document)
    except RequestError as error:
        messages.error(request, error.message)
        return redirect(of.singular, request.team.slug, document.pk)
    if was_archived:
        messages.success(request, f"{document.name} is back in the lists.")
        return redirect(of.singular, request.team.slug, document.pk)
    messages.success(
        request, f"{document.name} is archived. Runs keep the versions that they used; its page takes it back."
    )
    return redirect(of.plural, request.team.slug)


def get_document(request: TeamRequest, of: Kind, pk: int) -> Document:
    """One version of the team's documents. NotFound for another team's."""
    found: Document | None = of.model.objects.for_team(request.team).select_related("created_by").filter(pk=pk).first()
    if found is None:
        raise NotFound(f"There is no such {of.singular}.")
    return found


def versions_of(document: Document) -> list[Document]:
    """All versions of a name, newest first, without their bodies."""
    same = type(document).objects.filter(team_id=document.team_id, name=document.name)
    return list(same.select_related("created_by").defer("body").order_by("-version"))


def _readable(document: Document) -> dict[str, Any]:
    read = content_of(document)
    match type(document).__name__:
        case "Recipe":
            return {"steps": steps_of(read), "parameters": parameters_of(read), "description": read.description}
        case "Workload":
            return {
                "settings": driver_settings(read),
                "part": read.driver,
                "workload": read,
                "command": masked("", example_command(read)),
                "plan_rows": plan_rows(read.driver) if isinstance(read.driver, Jmeter) else (),
                "description": read.description,
            }
    return {"settings": server_settings(read), "part": read.server, "description": read.description}
