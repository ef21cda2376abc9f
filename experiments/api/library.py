"""The library: what is shipped, and templates and published figures as the team's own."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from ninja import Router
from ninja.responses import Status
from pydantic import BaseModel, Field

from agents.spec import MAX_DRIVERS
from agents.steps.recipe import Value
from agents.system import MAX_MEMBERS, MemberRole
from experiments.api.finding import named_host, named_hosts, named_members
from experiments.api.plumbing.auth import READ, WRITE, member_of
from experiments.api.shapes import Body, Named, Parameters, RunRow
from experiments.asking.library import catalogue
from experiments.asking.library.catalogue import ExperimentTemplate, Setting
from experiments.asking.library.fit import fits
from experiments.asking.library.install import Places, install
from experiments.asking.library.published import import_published
from experiments.registry.errors import RequestError

router = Router(auth=READ, tags=["library"])


class SourceOut(BaseModel):
    text: str
    url: str


class SettingOut(BaseModel):
    """A setting of a template; null = it must be given."""

    name: str
    type: str
    small: Value | None
    published: Value | None
    description: str


class TemplateRow(BaseModel):
    name: str
    title: str
    works: list[int]
    question: str
    variants: list[str]


class ConcurrencyOut(BaseModel):
    unit: str
    small: list[int]
    published: list[int]


class TemplateOut(TemplateRow):
    answer: str
    sources: list[SourceOut]
    settings: list[SettingOut]
    documents: dict[str, list[str]] = Field(description="What is installed: titles by kind")
    members: list[str] = Field(description="The further members of its system by role; `members` names a host of each")
    two_suts: bool = Field(description="Whether it compares two servers, so that `other_sut` must be given")
    concurrency: ConcurrencyOut | None = Field(
        description="The numbers of connections or users that every variant has one after the other"
    )


class RecordedRow(BaseModel):
    name: str
    title: str
    works: list[int]
    reports: list[str]


class LibraryOut(BaseModel):
    experiments: list[TemplateRow]
    published: list[RecordedRow]


class InstallIn(Body):
    scale: Literal["small", "published"] = "small"
    settings: Parameters = {}
    sut: str = Field(
        "", max_length=120, description="With `drivers`: the answer has the experiment for POST /experiments"
    )
    drivers: list[Annotated[str, Field(max_length=120)]] = Field(
        [], max_length=MAX_DRIVERS, description="The driver hosts; several divide the load"
    )
    other_sut: str = Field("", max_length=120, description="The second server of a template that compares two")
    members: dict[MemberRole, Annotated[str, Field(max_length=120)]] = Field(
        {}, max_length=MAX_MEMBERS, description="Of a system: role of each further member -> its host"
    )


class FitOut(BaseModel):
    result: Literal["pass", "warn", "fail"]
    sentence: str


class InstallOut(BaseModel):
    applications: list[Named]
    recipes: list[Named]
    workload: Named
    fits: list[FitOut] = Field(description="What fits the hosts and what does not, as far as it is known")
    experiment: dict[str, Any] | None = Field(description="The body for POST /experiments; null without hosts")


@router.get("", response=LibraryOut)
def list_library(request: HttpRequest) -> LibraryOut:
    """Every experiment template and every set of published figures."""
    return LibraryOut(
        experiments=[TemplateRow(**_row(one)) for one in catalogue.templates()],
        published=[
            RecordedRow(name=one.name, title=one.title, works=list(one.works), reports=[r.name for r in one.reports])
            for one in map(catalogue.recorded, catalogue.names("recorded"))
        ],
    )


@router.get("/{name}", response=TemplateOut)
def get_template(request: HttpRequest, name: str) -> TemplateOut:
    """One template with its settings and where its values come from."""
    found = catalogue.template(name)
    documents: dict[str, list[str]] = {}
    for kind, item in catalogue.parts_of(found):
        documents.setdefault(f"{kind}s", []).append(item.title)
    return TemplateOut(
        **_row(found),
        answer=found.answer.strip(),
        sources=[SourceOut(text=source.text, url=source.url) for source in found.source],
        settings=[_setting(key, setting) for key, setting in sorted(found.settings().items())],
        documents=documents,
        members=list(found.roles),
        two_suts=found.two_suts,
        concurrency=ConcurrencyOut(unit=found.concurrency_unit, **found.concurrency.model_dump())
        if found.concurrency
        else None,
    )


@router.get(
    "/{name}/yaml",
    summary="The template as it is shipped",
    openapi_extra={"responses": {200: {"description": "OK", "content": {"application/yaml": {"schema": {}}}}}},
)
def get_template_yaml(request: HttpRequest, name: str) -> HttpResponse:
    """The YAML of the template."""
    response = HttpResponse(catalogue.text_of("experiments", name), content_type="application/yaml; charset=utf-8")
    response["X-Content-Type-Options"] = "nosniff"
    return response


@router.post("/{name}/install", response=InstallOut, auth=WRITE)
def install_template(request: HttpRequest, name: str, payload: InstallIn) -> InstallOut:
    """Save its application, recipes and workload as versions of the team; the same again changes nothing.

    Nothing is launched. With hosts the answer also has the body for POST /experiments.
    """
    member = member_of(request)
    template = catalogue.template(name)
    places = None
    if payload.sut or payload.drivers or payload.other_sut:
        if not payload.drivers:
            raise RequestError("Name at least one driver host.", field="drivers")
        places = Places(
            named_host(member, payload.sut, field="sut"),
            tuple(named_hosts(member, payload.drivers, field="drivers")),
            named_host(member, payload.other_sut, field="other_sut") if payload.other_sut else None,
            named_members(member, payload.members, field="members"),
        )
    with transaction.atomic():  # hosts that do not fit leave nothing behind
        ready = install(member, template, payload.scale, payload.settings)
        experiment = ready.request_body(places) if places else None
    found = fits(template, payload.scale, places, payload.settings) if places else []
    return InstallOut(
        applications=[Named(name=one.name, version=one.version) for one in ready.applications.values()],
        recipes=[Named(name=one.name, version=one.version) for one in ready.recipes.values()],
        workload=Named(name=ready.workload.name, version=ready.workload.version),
        fits=[FitOut(result=one.result, sentence=one.sentence) for one in found],
        experiment=experiment,
    )


@router.post("/published/{name}/import", response={201: list[RunRow]}, auth=WRITE)
def import_figures(request: HttpRequest, name: str) -> Status[list[RunRow]]:
    """Store published figures as runs without execution; those that the team has already are not doubled."""
    member = member_of(request)
    runs = import_published(member, catalogue.recorded(name))
    return Status(201, [RunRow.of(run, member.team.slug) for run in runs])


def _row(template: ExperimentTemplate) -> dict[str, Any]:
    return {
        "name": template.name,
        "title": template.title,
        "works": list(template.works),
        "question": template.question,
        "variants": [variant.name for variant in template.variants],
    }


def _setting(name: str, setting: Setting) -> SettingOut:
    return SettingOut(
        name=name,
        type=setting.type,
        small=setting.at("small"),
        published=setting.at("published"),
        description=setting.description,
    )
