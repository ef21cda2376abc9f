"""What the operations of the library take and give."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from agents.spec import MAX_DRIVERS
from agents.steps.recipe import Value
from agents.system import MAX_MEMBERS, MemberRole
from experiments.api.shapes import Body, Named, Parameters
from experiments.api.tuning_shapes import LimitIn
from experiments.asking.library.catalogue import Setting, TuningTemplate
from experiments.asking.library.tuning_searches import tried


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

    @classmethod
    def of(cls, name: str, setting: Setting) -> SettingOut:
        return cls(
            name=name,
            type=setting.type,
            small=setting.at("small"),
            published=setting.at("published"),
            description=setting.description,
        )


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


class TuningTemplateRow(BaseModel):
    name: str
    title: str
    works: list[int]
    question: str
    parameters: list[str] = Field(description="What is searched")


class SearchedOut(BaseModel):
    """One parameter of a tuning search: from `low` to `high`, or only `choices`."""

    name: str
    description: str
    default: Value = Field(description="What all is compared with")
    choices: list[Value]
    low: Value | None
    high: Value | None
    log: bool = Field(description="By orders of magnitude")
    only_when: str = Field(description="Counts only then; empty: always")


class TuningSearchOut(BaseModel):
    """What a tuning search of the library tries and keeps, and what it never proposes."""

    parameters: list[SearchedOut]
    forbidden: list[str] = Field(description="Mixtures that are never tried")
    unsafe: dict[str, str] = Field(description="What is never proposed, and why")
    metric: str
    limits: list[LimitIn]
    margin_ratio: float
    budget_runs: int

    @classmethod
    def of(cls, template: TuningTemplate) -> TuningSearchOut:
        return cls(
            parameters=[SearchedOut.model_validate(vars(one)) for one in tried(template)],
            forbidden=template.space.get("forbidden", []),
            unsafe=template.unsafe,
            metric=template.decides,
            limits=[LimitIn(metric=metric, at_most=most) for metric, most in template.limits.items()],
            margin_ratio=template.margin_ratio,
            budget_runs=template.budget_runs,
        )


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
    tuning: TuningSearchOut | None = Field(description="Of a tuning search; null of an experiment")


class RecordedRow(BaseModel):
    name: str
    title: str
    works: list[int]
    reports: list[str]


class LibraryOut(BaseModel):
    experiments: list[TemplateRow]
    tunings: list[TuningTemplateRow]
    published: list[RecordedRow]


class InstallIn(Body):
    scale: Literal["small", "published"] = "small"
    settings: Parameters = {}
    sut: str = Field("", max_length=120, description="With `drivers`: the answer has the body that launches it")
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
    experiment: dict[str, Any] | None = Field(
        description="The body for POST /experiments; null without hosts, and of a tuning search"
    )
    tuning: dict[str, Any] | None = Field(
        description="The body for POST /tunings; null without hosts, and of an experiment"
    )
