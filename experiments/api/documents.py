"""Applications, recipes and workloads: the same routes for each of them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Router
from ninja.params.functions import Query
from ninja.responses import Status
from pydantic import BaseModel

from agents.recipe import RecipeDocument
from agents.spec import ApplicationDocument, WorkloadDocument
from experiments.api.auth import READ, WRITE, member_of
from experiments.api.finding import find_document
from experiments.documents.versions import archive, diff_versions, noun, save_version, to_yaml
from experiments.models import Application, Document, Recipe, Workload


class VersionRow(BaseModel):
    name: str
    version: int
    note: str
    created_by: str | None
    created_at: datetime
    archived: bool


class VersionOut(VersionRow):
    body: dict[str, Any]


class DifferenceOut(BaseModel):
    """One path that differs; null = not there."""

    path: str
    values: list[str | None]


class DiffOut(BaseModel):
    name: str
    versions: list[int]
    differences: list[DifferenceOut]


def _row(document: Document) -> dict[str, Any]:
    return {
        "name": document.name,
        "version": document.version,
        "note": document.note,
        "created_by": document.created_by.get_username() if document.created_by else None,
        "created_at": document.created_at,
        "archived": document.archived,
    }


def _detail(document: Document) -> VersionOut:
    return VersionOut(**_row(document), body=document.body)


def document_router(model: type[Document], schema: type[BaseModel]) -> Router:
    """The routes of one kind of document. A body may come as JSON or as YAML."""
    kind = noun(model)
    router = Router(auth=READ, tags=[f"{kind}s"])

    @router.get("", response=list[VersionRow], operation_id=f"list_{kind}s", summary=f"List {kind}s")
    def list_documents(request: HttpRequest) -> list[VersionRow]:
        newest = model.objects.for_team(member_of(request).team).newest_versions()
        return [VersionRow(**_row(document)) for document in newest.select_related("created_by").defer("body")]

    @router.get("/{name}", response=VersionOut, operation_id=f"get_{kind}", summary=f"The newest version of the {kind}")
    def get_document(
        request: HttpRequest, name: str, version: int | None = Query(None, ge=1, description="else the newest one")
    ) -> VersionOut:
        return _detail(find_document(member_of(request), model, name, version))

    def save_document(
        request: HttpRequest, name: str, payload: BaseModel, note: str = Query("", max_length=400)
    ) -> Status[VersionOut]:
        member = member_of(request)
        last = model.objects.for_team(member.team).order_by("-pk").values_list("pk", flat=True).first()
        saved = save_version(member, model, name, payload.model_dump(mode="json", by_alias=True), note=note)
        return Status(201 if last is None or saved.pk > last else 200, _detail(saved))

    save_document.__annotations__["payload"] = schema  # the shape differs from router to router
    router.put(
        "/{name}",
        response={200: VersionOut, 201: VersionOut},
        auth=WRITE,
        operation_id=f"save_{kind}",
        summary=f"Save a version of the {kind}",
        description="201 with the new version, or 200 when the newest version says the same already.",
    )(save_document)

    @router.delete(
        "/{name}", response=VersionOut, auth=WRITE, operation_id=f"archive_{kind}", summary=f"Archive the {kind}"
    )
    def archive_document(request: HttpRequest, name: str) -> VersionOut:
        document = find_document(member_of(request), model, name)
        archive(member_of(request), document)
        return _detail(document)

    @router.get(
        "/{name}/versions",
        response=list[VersionRow],
        operation_id=f"list_{kind}_versions",
        summary="All versions, newest first",
    )
    def list_versions(request: HttpRequest, name: str) -> list[VersionRow]:
        member = member_of(request)
        find_document(member, model, name)
        versions = model.objects.for_team(member.team).filter(name=name).select_related("created_by")
        return [VersionRow(**_row(version)) for version in versions.defer("body").order_by("-version")[:500]]

    @router.get(
        "/{name}/diff", response=DiffOut, operation_id=f"diff_{kind}", summary="What differs between two versions"
    )
    def diff_document(request: HttpRequest, name: str, a: int = Query(..., ge=1), b: int = Query(..., ge=1)) -> DiffOut:
        member = member_of(request)
        found = diff_versions(find_document(member, model, name, a), find_document(member, model, name, b))
        return DiffOut(
            name=name,
            versions=[a, b],
            differences=[DifferenceOut(path=one.path, values=list(one.values)) for one in found],
        )

    @router.get(
        "/{name}/yaml",
        operation_id=f"get_{kind}_yaml",
        summary=f"The {kind} as YAML",
        description="PUT takes it back with `Content-Type: application/yaml`.",
        openapi_extra={
            "responses": {200: {"description": "OK", "content": {"application/yaml": {"schema": {"type": "string"}}}}}
        },
    )
    def get_yaml(request: HttpRequest, name: str, version: int | None = Query(None, ge=1)) -> HttpResponse:
        document = find_document(member_of(request), model, name, version)
        response = HttpResponse(to_yaml(document), content_type="application/yaml; charset=utf-8")
        response["X-Content-Type-Options"] = "nosniff"
        return response

    return router


applications = document_router(Application, ApplicationDocument)
recipes = document_router(Recipe, RecipeDocument)
workloads = document_router(Workload, WorkloadDocument)
