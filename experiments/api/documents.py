"""Applications, recipes and workloads: the same routes for each of them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Literal

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from ninja import Router
from ninja.params.functions import Query
from pydantic import BaseModel, Field

from agents.spec import ApplicationDocument, WorkloadDocument
from agents.steps.recipe import RecipeDocument
from experiments.api.finding import find_document
from experiments.api.plumbing.auth import READ, WRITE, member_of
from experiments.api.plumbing.conditional import CHANGE_EXTRA, READ_EXTRA, insist_on_match, tagged
from experiments.api.plumbing.paging import CURSOR, LIMIT, rows_of_page, tell_page
from experiments.api.plumbing.sparse import FIELDS, sparse
from experiments.models import Application, Document, Member, Recipe, Team, Workload
from experiments.registry.documents.versions import archive, diff_versions, noun, save_version, to_yaml, unarchive
from experiments.registry.errors import NotFound

_MAX_VERSION = 2**31 - 1


class VersionRow(BaseModel):
    name: str
    version: int
    note: str
    created_by: str | None
    created_at: datetime
    archived: bool
    one_off: bool = Field(description="Made for one run from its changed specification; no list offers it")


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
        "one_off": document.one_off,
    }


def _detail(document: Document) -> VersionOut:
    return VersionOut(**_row(document), body=document.body)


def _insist(request: HttpRequest, member: Member, model: type[Document], name: str) -> None:
    """Lock out other saves for this transaction; then the newest version must be the one that If-Match names."""
    if "If-Match" not in request.headers and "If-None-Match" not in request.headers:
        return
    Team.objects.select_for_update(no_key=True).get(pk=member.team_id)  # the lock of `save_version`
    try:
        newest = _detail(find_document(member, model, name))
    except NotFound:
        newest = None
    insist_on_match(request, newest)


def document_router(model: type[Document], schema: type[BaseModel]) -> Router:
    """The routes of one kind of document. A body may come as JSON or as YAML."""
    kind = noun(model)
    router = Router(auth=READ, tags=[f"{kind}s"])
    _add_reading(router, model, kind)
    _add_saving(router, model, kind, schema)
    _add_archiving(router, model, kind)
    _add_versions(router, model, kind)
    _add_yaml(router, model, kind)
    return router


def _add_reading(router: Router, model: type[Document], kind: str) -> None:
    @router.get("", response=list[VersionRow], operation_id=f"list_{kind}s", summary=f"List {kind}s")
    def list_documents(
        request: HttpRequest,
        archived: Literal["", "true", "false"] = Query("", description="true for those that are left out otherwise"),
        fields: str = FIELDS,
        cursor: int = CURSOR,
        limit: int = LIMIT,
    ) -> Any:
        documents = model.objects.for_team(member_of(request).team)
        newest = documents.archived_names() if archived == "true" else documents.newest_versions()
        found = list(newest.select_related("created_by").defer("body"))
        rows = [VersionRow(**_row(document)) for document in rows_of_page(request, found, cursor, limit)]
        return sparse(rows, VersionRow, fields)

    @router.get(
        "/{name}",
        response=VersionOut,
        operation_id=f"get_{kind}",
        summary=f"The newest version of the {kind}",
        openapi_extra=READ_EXTRA,
    )
    def get_document(
        request: HttpRequest, name: str, version: int | None = Query(None, ge=1, description="else the newest one")
    ) -> HttpResponse:
        return tagged(request, _detail(find_document(member_of(request), model, name, version)))


def _add_saving(router: Router, model: type[Document], kind: str, schema: type[BaseModel]) -> None:
    def save_document(
        request: HttpRequest, name: str, payload: BaseModel, note: str = Query("", max_length=400)
    ) -> HttpResponse:
        member = member_of(request)
        with transaction.atomic():
            _insist(request, member, model, name)
            last = model.objects.for_team(member.team).order_by("-pk").values_list("pk", flat=True).first()
            saved = save_version(member, model, name, payload.model_dump(mode="json", by_alias=True), note=note)
        is_new = last is None or saved.pk > last
        saved.refresh_from_db()  # PostgreSQL orders the keys of the body, and the ETag is of their order
        return tagged(request, _detail(saved), 201 if is_new else 200)

    save_document.__annotations__["payload"] = schema  # the shape differs from router to router
    router.put(
        "/{name}",
        response={200: VersionOut, 201: VersionOut},
        auth=WRITE,
        operation_id=f"save_{kind}",
        summary=f"Save a version of the {kind}",
        description="201 with the new version, or 200 when the newest version says the same already.",
        openapi_extra=CHANGE_EXTRA,
    )(save_document)


def _add_archiving(router: Router, model: type[Document], kind: str) -> None:
    def changing(change: Callable[[Member, Document], None]) -> Callable[[HttpRequest, str], HttpResponse]:
        def change_document(request: HttpRequest, name: str) -> HttpResponse:
            member = member_of(request)
            with transaction.atomic():
                _insist(request, member, model, name)
                document = find_document(member, model, name)
                change(member, document)
            return tagged(request, _detail(document))

        return change_document

    shared: dict[str, Any] = {"response": VersionOut, "auth": WRITE, "openapi_extra": CHANGE_EXTRA}
    router.delete("/{name}", operation_id=f"archive_{kind}", summary=f"Archive the {kind}", **shared)(changing(archive))
    router.post(
        "/{name}/unarchive",
        operation_id=f"unarchive_{kind}",
        summary=f"Put an archived {kind} back into the lists",
        **shared,
    )(changing(unarchive))


def _add_versions(router: Router, model: type[Document], kind: str) -> None:
    @router.get(
        "/{name}/versions",
        response=list[VersionRow],
        operation_id=f"list_{kind}_versions",
        summary="All versions, newest first",
    )
    def list_versions(
        request: HttpRequest,
        name: str,
        cursor: int = Query(0, ge=0, le=_MAX_VERSION, description="Only versions before this one; see the header Link"),
        limit: int = Query(500, ge=1, le=500),
    ) -> list[VersionRow]:
        member = member_of(request)
        find_document(member, model, name)
        versions = model.objects.for_team(member.team).filter(name=name, version__lt=cursor or _MAX_VERSION)
        found = list(versions.select_related("created_by").defer("body").order_by("-version")[: limit + 1])
        if len(found) > limit:
            tell_page(request, found[limit - 1].version)
        return [VersionRow(**_row(version)) for version in found[:limit]]

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


def _add_yaml(router: Router, model: type[Document], kind: str) -> None:
    @router.get(
        "/{name}/yaml",
        operation_id=f"get_{kind}_yaml",
        summary=f"The {kind} as YAML",
        description="PUT takes it back with `Content-Type: application/yaml`.",
        openapi_extra={"responses": {200: {"description": "OK", "content": {"application/yaml": {"schema": {}}}}}},
    )
    def get_yaml(request: HttpRequest, name: str, version: int | None = Query(None, ge=1)) -> HttpResponse:
        document = find_document(member_of(request), model, name, version)
        response = HttpResponse(to_yaml(document), content_type="application/yaml; charset=utf-8")
        response["X-Content-Type-Options"] = "nosniff"
        return response


applications = document_router(Application, ApplicationDocument)
recipes = document_router(Recipe, RecipeDocument)
workloads = document_router(Workload, WorkloadDocument)
