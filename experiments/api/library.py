"""The library: what is shipped, and templates and published figures as the team's own."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from ninja import Router
from ninja.responses import Status

from experiments.api.finding import named_host, named_hosts, named_members
from experiments.api.library_shapes import (
    ConcurrencyOut,
    FitOut,
    InstallIn,
    InstallOut,
    LibraryOut,
    RecordedRow,
    SettingOut,
    SourceOut,
    TemplateOut,
    TemplateRow,
    TuningSearchOut,
    TuningTemplateRow,
)
from experiments.api.plumbing.auth import READ, WRITE, member_of
from experiments.api.plumbing.idempotency import idempotent
from experiments.api.shapes import Named, RunRow
from experiments.asking.library import catalogue
from experiments.asking.library.catalogue import ExperimentTemplate, TuningTemplate
from experiments.asking.library.fit import fits
from experiments.asking.library.install import Places, install
from experiments.asking.library.published import import_published
from experiments.asking.library.tuning_searches import plan_of, tuning_body
from experiments.models import Member
from experiments.registry.errors import RequestError

router = Router(auth=READ, tags=["library"])


@router.get("", response=LibraryOut)
def list_library(request: HttpRequest) -> LibraryOut:
    """Every experiment template, every tuning search and every set of published figures."""
    return LibraryOut(
        experiments=[TemplateRow(**_row(one)) for one in catalogue.templates()],
        tunings=[_tuning_row(one) for one in catalogue.tunings()],
        published=[
            RecordedRow(name=one.name, title=one.title, works=list(one.works), reports=[r.name for r in one.reports])
            for one in map(catalogue.recorded, catalogue.names("recorded"))
        ],
    )


@router.get("/{name}", response=TemplateOut)
def get_template(request: HttpRequest, name: str) -> TemplateOut:
    """One experiment or tuning search with its settings and where its values come from."""
    found = catalogue.template_or_tuning(name)
    documents: dict[str, list[str]] = {}
    for kind, item in catalogue.parts_of(found):
        documents.setdefault(f"{kind}s", []).append(item.title)
    return TemplateOut(
        **_row(found),
        answer=found.answer.strip(),
        sources=[SourceOut(text=source.text, url=source.url) for source in found.source],
        settings=[SettingOut.of(key, setting) for key, setting in sorted(found.settings().items())],
        documents=documents,
        members=list(found.roles),
        two_suts=found.two_suts,
        concurrency=ConcurrencyOut(unit=found.concurrency_unit, **found.concurrency.model_dump())
        if found.concurrency
        else None,
        tuning=TuningSearchOut.of(found) if isinstance(found, TuningTemplate) else None,
    )


@router.get(
    "/{name}/yaml",
    summary="The template as it is shipped",
    openapi_extra={"responses": {200: {"description": "OK", "content": {"application/yaml": {"schema": {}}}}}},
)
def get_template_yaml(request: HttpRequest, name: str) -> HttpResponse:
    """The YAML of the template."""
    text = catalogue.text_of(catalogue.template_or_tuning(name).folder, name)
    response = HttpResponse(text, content_type="application/yaml; charset=utf-8")
    response["X-Content-Type-Options"] = "nosniff"
    return response


@router.post("/{name}/install", response=InstallOut, auth=WRITE)
def install_template(request: HttpRequest, name: str, payload: InstallIn) -> InstallOut:
    """Save its application, recipes and workload as versions of the team; the same again changes nothing.

    Nothing is launched. With hosts the answer also has the body for POST /experiments, or for POST /tunings.
    """
    member = member_of(request)
    template = catalogue.template_or_tuning(name)
    places = _places(member, payload)
    experiment = tuning = None
    with transaction.atomic():  # hosts that do not fit leave nothing behind
        ready = install(member, template, payload.scale, payload.settings)
        if places and isinstance(template, TuningTemplate):
            tuning = tuning_body(plan_of(template, ready, places))
        elif places:
            experiment = ready.request_body(places)
    found = fits(template, payload.scale, places, payload.settings) if places else []
    return InstallOut(
        applications=[Named(name=one.name, version=one.version) for one in ready.applications.values()],
        recipes=[Named(name=one.name, version=one.version) for one in ready.recipes.values()],
        workload=Named(name=ready.workload.name, version=ready.workload.version),
        fits=[FitOut(result=one.result, sentence=one.sentence) for one in found],
        experiment=experiment,
        tuning=tuning,
    )


@router.post("/published/{name}/import", response={201: list[RunRow]}, auth=WRITE)
@idempotent
def import_figures(request: HttpRequest, name: str) -> Status[list[RunRow]]:
    """Store published figures as runs without execution; those that the team has already are not doubled."""
    member = member_of(request)
    runs = import_published(member, catalogue.recorded(name))
    return Status(201, [RunRow.of(run, member.team.slug) for run in runs])


def _places(member: Member, payload: InstallIn) -> Places | None:
    """The hosts that the body names, None when it names none. RequestError names the field of one that is missing."""
    if not (payload.sut or payload.drivers or payload.other_sut):
        return None
    if not payload.drivers:
        raise RequestError("Name at least one driver host.", field="drivers")
    return Places(
        named_host(member, payload.sut, field="sut"),
        tuple(named_hosts(member, payload.drivers, field="drivers")),
        named_host(member, payload.other_sut, field="other_sut") if payload.other_sut else None,
        named_members(member, payload.members, field="members"),
    )


def _tuning_row(template: TuningTemplate) -> TuningTemplateRow:
    row = {name: getattr(template, name) for name in ("name", "title", "question")}
    parameters = [one["name"] for one in template.space["parameters"]]
    return TuningTemplateRow(**row, works=list(template.works), parameters=parameters)


def _row(template: ExperimentTemplate) -> dict[str, Any]:
    return {
        "name": template.name,
        "title": template.title,
        "works": list(template.works),
        "question": template.question,
        "variants": [variant.name for variant in template.variants],
    }
