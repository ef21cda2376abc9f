"""The library that BenchHub ships: applications, recipes, workloads and experiment templates, as YAML with sources."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar, cast

from pydantic import Field, ValidationError, model_validator

from agents.base.model import Frozen, first_problem
from agents.drivers import DRIVERS
from agents.profilers import PROFILERS
from agents.steps.recipe import Parameter, ParameterName, RecipeDocument, Value, substitute
from experiments.registry.documents.yaml_text import parse_yaml
from experiments.registry.errors import NotFound

DIRECTORY = Path(__file__).parent

Scale = Literal["small", "published"]
"""`small` fits one machine with two CPUs; `published` is what the source used."""

WORKS: Mapping[int, str] = {
    1: "Tomcat on a many-core server",
    2: "x86_64 against arm64",
    3: "Connectors, JVM memory and kernel keys",
    4: "CPU scalability",
    5: "Thread pool against virtual threads",
    6: "nginx",
    7: "PostgreSQL",
    8: "Redis",
    9: "Node.js",
    10: "Heap and collectors of the JVM",
    11: "A system of three tiers",
    12: "Two commits of a program",
    13: "Where the microseconds go",
}

_SLUG = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


class Source(Frozen):
    """Where values come from."""

    text: str = Field(min_length=1, max_length=400)
    url: str = Field("", pattern=r"^(https://\S+)?$")


class Setting(Parameter):
    """What an installation is told: `default` fits a small machine, `published` is the value of the source."""

    published: Value | None = None

    def at(self, scale: Scale) -> Value | None:
        """The value at a scale, None when a person must give it."""
        return self.published if scale == "published" and self.published is not None else self.default


class Item(Frozen):
    """What everything in the library has. `name` is the name of its file."""

    name: str = ""
    title: str = Field(pattern=r"^[^/]{1,120}$")
    works: tuple[int, ...] = Field(min_length=1)
    source: tuple[Source, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _known_works(self) -> Item:
        if unknown := set(self.works) - set(WORKS):
            raise ValueError(f"there is no work {min(unknown)}")
        return self


AnyItem = TypeVar("AnyItem", bound=Item)


class ShippedRecipe(Item):
    """A recipe; its own parameters are filled in at each launch, `settings` once, when it is installed."""

    settings: dict[ParameterName, Setting] = {}
    document: RecipeDocument

    def filled_in(self, values: Mapping[str, Value]) -> RecipeDocument:
        """The document with its settings; references to its parameters stay. PlanError names one without a value."""
        if not self.settings:
            return self.document
        known = {name: values[name] for name in self.settings if name in values}
        parameters = {name: f"${{{name}}}" for name in self.document.parameters}
        return self.document.model_copy(
            update={"steps": tuple(substitute(self.document.steps, {**known, **parameters}))}
        )


class ShippedDocument(Item):
    """An application or a workload; `${setting}` in the document is filled in when it is installed."""

    settings: dict[ParameterName, Setting] = {}
    document: dict[str, Any]


class WorkloadUse(Frozen):
    """The workload of a template. `fixed` settings are not asked; what is fixed gets a title of its own.

    `published` values replace fixed ones at that scale.
    """

    use: str
    title: str = ""
    fixed: dict[ParameterName, Value] = {}
    published: dict[ParameterName, Value] = {}

    def fixed_at(self, scale: Scale) -> dict[str, Value]:
        return {**self.fixed, **(self.published if scale == "published" else {})}


class Concurrency(Frozen):
    """The numbers of connections, or users, that every variant of a template has one after the other."""

    small: tuple[int, ...] = Field(min_length=2, max_length=10)
    published: tuple[int, ...] = Field(min_length=2, max_length=10)

    def at(self, scale: Scale) -> tuple[int, ...]:
        return self.published if scale == "published" else self.small


class TemplateVariant(Frozen):
    """One variant: `parameters` of the recipe at both scales, `published` in their place or beside them at that scale.

    `other_sut` runs it on the second server; `only` leaves it out at the other scale; `concurrency` are its connections
    or users in place of the workload's.
    """

    name: str = Field(min_length=1, max_length=120)
    application: str
    recipe: str
    parameters: dict[ParameterName, Value] = {}
    published: dict[ParameterName, Value] = {}
    other_sut: bool = False
    only: Scale | None = None
    concurrency: int | None = Field(None, ge=1)

    def parameters_at(self, scale: Scale) -> dict[str, Value]:
        return {**self.parameters, **(self.published if scale == "published" else {})}


class Needs(Frozen):
    """What the hosts must have; `published_cpus` of the SUT at the published scale, `java` 0 where nothing needs it."""

    cpus: int = Field(1, ge=1)
    published_cpus: int = Field(1, ge=1)
    memory_gb: float = Field(0.5, gt=0)
    published_memory_gb: float = Field(4, gt=0)
    java: int = Field(17, ge=0)
    root: bool = False
    sut: tuple[str, ...] = ()
    members: dict[str, tuple[str, ...]] = {}
    """What the host of each further member must have, by its role."""
    driver: tuple[str, ...] = ()


class Family(Frozen):
    """Templates that differ in a choice or two are one entry of the library, and each has its own of these choices.

    All of a family have the same title, question and choices; `choices` are what this one is: {"protocol": "HTTPS"}.
    """

    title: str = Field(pattern=r"^[^/]{1,120}$")
    question: str = Field(min_length=1, max_length=400)
    choices: dict[str, str] = Field(min_length=1, max_length=4)


class ExperimentTemplate(Item):
    """An experiment that can be launched: the question, what competes, how it is decided, and what hosts it needs.

    The first variant is the baseline. `answer` says what the page shows and how to read it. With `concurrency` every
    variant is there once per number of connections or users. `machines` is in what the servers of a template that
    compares two are meant to differ: in one of these at least. `profilers` give each run a profiled twin.
    """

    folder: ClassVar[str] = "experiments"
    """Where its file is."""

    question: str = Field(min_length=1, max_length=400)
    answer: str = Field(min_length=1, max_length=1000)
    workload: WorkloadUse
    concurrency: Concurrency | None = None
    variants: tuple[TemplateVariant, ...] = Field(min_length=1, max_length=20)
    machines: tuple[Literal["architecture", "kernel", "OS", "memory"], ...] = ("architecture",)
    needs: Needs
    profilers: tuple[str, ...] = ()
    repetitions: int = Field(5, ge=1, le=100)
    order: Literal["blocks", "interleaved", "sequential"] = "blocks"
    family: Family | None = None
    metric: str = Field("", description="Empty: the figure that stands for a run of the workload")
    margin_ratio: float = Field(0.03, gt=0, lt=1)

    @model_validator(mode="after")
    def _known_profilers(self) -> ExperimentTemplate:
        if unknown := set(self.profilers) - set(PROFILERS):
            raise ValueError(f"there is no profiler {min(unknown)}")
        return self

    @property
    def two_suts(self) -> bool:
        return any(variant.other_sut for variant in self.variants)

    @property
    def roles(self) -> tuple[str, ...]:
        """The further members of its system, each of which needs a host; () where there is one server."""
        members = (one for shipped in self.applications() for one in shipped.document.get("members", ()))
        return tuple(dict.fromkeys(str(one["role"]) for one in members))

    def variants_at(self, scale: Scale) -> tuple[TemplateVariant, ...]:
        """The variants of a scale, each of them once per number of connections or users."""
        chosen = tuple(variant for variant in self.variants if variant.only in (None, scale))
        if self.concurrency is None:
            return chosen
        return tuple(
            variant.model_copy(
                update={"name": f"{variant.name}, {count} {self.concurrency_unit}", "concurrency": count}
            )
            for variant in chosen
            for count in self.concurrency.at(scale)
        )

    @property
    def concurrency_unit(self) -> str:
        """connections or users, as the load tool has it."""
        return DRIVERS[workload(self.workload.use).document["driver"]["kind"]].concurrency_option

    def applications(self) -> tuple[ShippedDocument, ...]:
        return tuple(application(name) for name in dict.fromkeys(v.application for v in self.variants))

    def settings(self) -> dict[str, Setting]:
        """What an installation may be told: of its applications, recipes and workload, fixed ones left out."""
        shipped = workload(self.workload.use)
        recipes = [recipe(name) for name in dict.fromkeys(v.recipe for v in self.variants)]
        found = {name: setting for app in self.applications() for name, setting in app.settings.items()}
        found |= {name: setting for one in recipes for name, setting in one.settings.items()}
        return found | {n: s for n, s in shipped.settings.items() if n not in self.workload.fixed}


class TuningTemplate(ExperimentTemplate):
    """A tuning search that can be started: its one variant is the default, `space` what may be tried of its recipe.

    `limits` are metrics with the largest value that they may have, `unsafe` what is never proposed, and why.
    """

    folder: ClassVar[str] = "tunings"

    variants: tuple[TemplateVariant, ...] = Field(min_length=1, max_length=1)
    space: dict[str, Any]
    limits: dict[str, float] = Field({}, max_length=3)
    unsafe: dict[str, str] = Field(min_length=1)
    budget_runs: int = Field(60, ge=20, le=300)

    @property
    def decides(self) -> str:
        """The metric that says what is better."""
        return self.metric or "throughput_rps"

    @property
    def recipe_title(self) -> str:
        """The name that its recipe has where it was installed."""
        return recipe(self.variants[0].recipe).title


class RecordedReport(Frozen):
    """One report as its tool wrote it (a `file`, or `text`), the recipe behind it, labels, and tables of timers.

    `machine` is the file with what `agents.facts.described.COMMANDS` printed on the server. The label `setup` is what
    was asked of it, where several reports are repetitions.
    """

    name: str = Field(min_length=1, max_length=120)
    file: str = Field("", pattern=r"^([a-z0-9-]+\.txt)?$")
    text: str = ""
    command: str = ""
    machine: str = Field("", pattern=r"^([a-z0-9-]+\.txt)?$")
    recipe: str = ""
    labels: dict[str, str] = {}
    timers: dict[str, str] = {}

    def content(self) -> str:
        return self.text or recorded_text(self.file)


class Recorded(Item):
    """Published figures that become runs without execution; `metric` is the one that is charted."""

    answer: str = Field(min_length=1, max_length=1000)
    kind: str
    command: str = ""
    workload: str = ""
    metric: str = "throughput_rps"
    metric_label: str = "Throughput"
    unit: str = "requests/s"
    reports: tuple[RecordedReport, ...] = Field(min_length=1)


def recorded_text(file: str) -> str:
    """A published text, byte for byte."""
    return (DIRECTORY / "recorded" / file).read_text(encoding="utf-8")


def templates() -> tuple[ExperimentTemplate, ...]:
    """Every experiment template, by work and title."""
    found = [template(name) for name in names("experiments")]
    return tuple(sorted(found, key=lambda one: (one.works, one.title)))


def template(name: str) -> ExperimentTemplate:
    return _read("experiments", name, ExperimentTemplate)


def tuning(name: str) -> TuningTemplate:
    return _read("tunings", name, TuningTemplate)


def tunings() -> tuple[TuningTemplate, ...]:
    """Every tuning search, by work and title."""
    return tuple(sorted((tuning(name) for name in names("tunings")), key=lambda one: (one.works, one.title)))


def template_or_tuning(name: str) -> ExperimentTemplate:
    """The experiment or the tuning search of this name. NotFound when there is neither."""
    return tuning(name) if name in names("tunings") else template(name)


def known_space(recipe_name: str) -> dict[str, Any] | None:
    """What may be tried of the installed recipe of this name; None of a recipe that the library does not know."""
    return next((one.space for one in tunings() if one.recipe_title == recipe_name), None)


def application(name: str) -> ShippedDocument:
    return _read("applications", name, ShippedDocument)


def recipe(name: str) -> ShippedRecipe:
    return _read("recipes", name, ShippedRecipe)


def workload(name: str) -> ShippedDocument:
    return _read("workloads", name, ShippedDocument)


def recorded(name: str) -> Recorded:
    return _read("recorded", name, Recorded)


def names(kind: str) -> tuple[str, ...]:
    """The names of the files of one kind: applications, recipes, workloads, experiments, tunings, recorded."""
    return tuple(sorted(path.stem for path in (DIRECTORY / kind).glob("*.yaml")))


def text_of(kind: str, name: str) -> str:
    """The YAML as it is shipped. NotFound when there is no such file."""
    if not _SLUG.fullmatch(name) or name not in names(kind):
        raise NotFound(f"The library has no {kind.removesuffix('s')} {name[:120]!r}.")
    return (DIRECTORY / kind / f"{name}.yaml").read_text(encoding="utf-8")


def _read(kind: str, name: str, model: type[AnyItem]) -> AnyItem:
    return cast("AnyItem", _validated(kind, name, model))  # a cache forgets the type


@cache
def _validated(kind: str, name: str, model: type[Item]) -> Item:
    raw = parse_yaml(text_of(kind, name))
    try:
        return model.model_validate({**raw, "name": name})
    except ValidationError as error:
        path, problem = first_problem(error)
        raise ValueError(f"{kind}/{name}.yaml, {'.'.join(map(str, path))}: {problem}") from error


def parts_of(shown: ExperimentTemplate) -> Iterator[tuple[str, Item]]:
    """The kind and the item of everything that a template is made of, each once."""
    yield from (("application", one) for one in shown.applications())
    yield from (("recipe", recipe(name)) for name in dict.fromkeys(v.recipe for v in shown.variants))
    yield "workload", workload(shown.workload.use)
