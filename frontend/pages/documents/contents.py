"""What a version of a document says, as people read it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from agents.base.errors import AgentError
from agents.base.redaction import masked
from agents.drivers import DRIVERS
from agents.drivers.base.driver import Target
from agents.servers import SERVERS
from agents.spec import ApplicationDocument, WorkloadDocument
from agents.steps import STEPS, is_host_step
from agents.steps.recipe import RecipeDocument
from experiments.models import Document, Recipe, Workload
from frontend.shared.document_kinds import kind_label
from frontend.shared.forms.model_fields import fields_of, flatten, label_of, show_scalar

EXAMPLE_CPUS = 8
"""Stands in for `sut_cpu_count` where a recipe is shown without a host."""


@dataclass(frozen=True)
class Setting:
    """A label with its value; `block` values have several lines."""

    label: str
    value: str

    @property
    def block(self) -> bool:
        return "\n" in self.value


@dataclass(frozen=True)
class ShownParameter:
    """A parameter as people read it; `default` is "" when a value must be given."""

    name: str
    type: str
    default: str
    allowed: str
    description: str


@dataclass(frozen=True)
class ShownStep:
    """A step as people read it. `undo` is what becomes of it after the run."""

    number: int
    kind: str
    title: str
    settings: list[Setting]
    undo: str


def summary_of(document: Document) -> str:
    """One line for lists."""
    body: Mapping[str, Any] = document.body
    match document:
        case Recipe():
            kinds = [str(step.get("kind", "?")).replace("_", " ") for step in body.get("steps", ())]
            return ", ".join(dict.fromkeys(kinds)) or "no steps: as the server comes"
        case Workload():
            driver, phases = body.get("driver", {}), body.get("phases", ())
            words = [
                kind_label(str(driver.get("kind", "?"))),
                *(f"{driver[key]} {key}" for key in ("connections", "threads", "users") if driver.get(key)),
                *_offered(driver),
                " + ".join(f"{phase['duration_s']} s" for phase in phases),
            ]
            return ", ".join(words)
    server = body.get("server", {})
    return f"{kind_label(str(server.get('kind', '?')))}, port {server.get('port', '?')}"


def _offered(driver: Mapping[str, Any]) -> list[str]:
    """The rate that a tool is asked to offer, in the tool's own unit; an upper limit is no such rate."""
    tool = DRIVERS.get(str(driver.get("kind")))
    shared = tool.divided if tool else {}
    rates = {option: unit for option, unit in shared.items() if unit.endswith("/s") and not option.startswith("limit_")}
    return [f"{driver[option]:,} {unit} offered" for option, unit in rates.items() if driver.get(option)]


def settings_of(model: type[BaseModel], body: Mapping[str, Any]) -> list[Setting]:
    """What a body chooses, label by label, in the order of the form."""
    texts = flatten(model, body)
    found = []
    for field in fields_of(model, texts):
        found += [Setting(f"{field.label}: {row.file}", row.text) for row in field.files if row.file]
        found += [Setting(field.label, field.value)] if field.value else []
    return found


def parameters_of(document: RecipeDocument) -> list[ShownParameter]:
    """The parameters by name."""
    found = []
    for name, parameter in sorted(document.parameters.items()):
        bounds = [
            f"{sign} {bound:g}"
            for sign, bound in (("≥", parameter.minimum), ("≤", parameter.maximum))
            if bound is not None
        ]
        allowed = ", ".join(map(show_scalar, parameter.choices)) or " ".join(bounds)
        if parameter.memory:
            allowed = ", ".join(filter(None, (allowed, f"{parameter.memory} of memory")))
        found.append(
            ShownParameter(name, parameter.type, show_scalar(parameter.default), allowed, parameter.description)
        )
    return found


def steps_of(document: RecipeDocument) -> list[ShownStep]:
    """The steps with titles; references to parameters stay where no default fills them."""
    return [_shown(number, step, document) for number, step in enumerate(document.steps, start=1)]


def server_settings(document: ApplicationDocument) -> list[Setting]:
    body = document.server.model_dump(mode="json", by_alias=True)
    return settings_of(SERVERS[document.server.kind], body)


def driver_settings(document: WorkloadDocument) -> list[Setting]:
    body = document.driver.model_dump(mode="json", by_alias=True)
    found = settings_of(DRIVERS[document.driver.kind], body)
    return [Setting(one.label, masked("", one.value)) for one in found]


def example_command(document: WorkloadDocument) -> str:
    """The measured phase's command line with SUT in place of the address; empty when the options need more."""
    target = Target(document.address_at("SUT:PORT"))
    try:
        return document.driver.command(target, document.phases[-1].duration_s).shell()
    except AgentError:
        return ""


def _shown(number: int, raw: Mapping[str, Any], document: RecipeDocument) -> ShownStep:
    kind = str(raw.get("kind", ""))
    model = STEPS[kind]
    title, undo = label_of(kind), "Nothing to undo: it holds for the server's process alone."
    try:
        alone = document.model_copy(update={"steps": (dict(raw),)})
        step = alone.resolve(dict(_examples(document)), built_in={"sut_cpu_count": EXAMPLE_CPUS})[0]
    except AgentError:
        return ShownStep(number, kind, title, settings_of(model, raw), "")
    if is_host_step(step):
        undo = "Put back after the run and read again to prove it."
    if "${" not in str(raw):
        title = step.title()
    return ShownStep(number, kind, title, settings_of(model, raw), undo)


def _examples(document: RecipeDocument) -> Iterator[tuple[str, Any]]:
    """A value for each parameter that has no default, so that a step can be read."""
    plain = {"int": 1, "float": 1.0, "str": "1", "bool": True}
    for name, parameter in document.parameters.items():
        if parameter.default is None:
            yield name, parameter.choices[0] if parameter.choices else parameter.minimum or plain[parameter.type]
