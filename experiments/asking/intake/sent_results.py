"""What programs send about a run that they measured: its shape, and its figures, checked."""

from __future__ import annotations

import json
import unicodedata
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field

from agents.base.errors import ParseError
from agents.drivers.command.bounds import check_bounds
from agents.drivers.command.figures import MAX_OWN, MAX_VALUE, NAME, UNIT, is_known, report_of
from agents.facts.described import COMMANDS, MAX_CHARS
from agents.results.report import LoadReport, OwnMetric
from agents.steps.recipe import Value
from experiments.registry.errors import RequestError
from experiments.registry.metrics.vocabulary import METRICS

MAX_FIGURES = 100
MAX_PARAMETERS = 200
MAX_SERIES = 50
_TOTAL, _OTHER = "errors_total", "errors_other"

_HIDDEN = ("Cc", "Cf", "Zl", "Zp")
"""Categories of Unicode that nobody sees or types: control characters, marks of direction, ends of lines."""


def _seen(text: str) -> str:
    if hidden := next((sign for sign in text if unicodedata.category(sign) in _HIDDEN), None):
        raise ValueError(f"has characters that can be seen only, and not U+{ord(hidden):04X}")
    return text


Number = Annotated[float, Field(strict=True)]
Seen = Annotated[str, AfterValidator(_seen)]
"""A name that people read and type again."""


class _Sent(BaseModel):
    """What it does not know, it refuses."""

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True, allow_inf_nan=False, frozen=True)


class OwnFigure(_Sent):
    """A figure that BenchHub does not know by name."""

    value: Number
    unit: str = Field(min_length=1, max_length=20)
    direction: Literal["higher", "lower"] = Field(description="Which of the two is better")
    low: Number | None = Field(
        None, description="Refused below it; without it 0 for a latency, a duration, a rate or a count by its name"
    )
    high: Number | None = Field(
        None, description="Refused above it; without it 1 for a cpu_ratio, busy_ratio, hit_ratio or error_ratio"
    )


class SentSeries(_Sent):
    """One channel over time: as many values as times, times in seconds from where measuring began, rising."""

    channel: Seen = Field(min_length=1, max_length=120, description="For example `heap.used_bytes`")
    unit: str = Field("", max_length=20)
    role: Literal["sut", "driver"] = "sut"
    at_s: list[Number] = Field(min_length=1)
    values: list[Number] = Field(min_length=1)


class SentResult(_Sent):
    """A run that was measured elsewhere."""

    tool: Seen = Field(min_length=1, max_length=60, description="What measured it, with its version: `gatling 3.14`")
    metrics: dict[str, Number] = Field(
        {}, max_length=MAX_FIGURES, description="Figures by the names of `GET /metrics`; also requests and duration_s"
    )
    own_metrics: dict[str, OwnFigure] = Field({}, max_length=MAX_OWN, description="Figures with names of your own")
    parameters: dict[str, Value] = Field(
        {}, max_length=MAX_PARAMETERS, description="What was chosen for this run; compared beside its figures"
    )
    series: list[SentSeries] = Field([], max_length=MAX_SERIES)
    labels: dict[str, str] = {}
    tags: list[str] = []
    notes: str = Field("", max_length=10_000)
    application: str = Field("", max_length=120)
    recipe: str = Field("", max_length=120)
    workload: str = Field("", max_length=120)
    history: Seen = Field(
        "",
        max_length=120,
        description="Runs with the same history, application, workload, tool and machine are points of one series. A "
        "run that names neither history nor application nor workload is in none",
    )
    machine: str = Field(
        "",
        max_length=MAX_CHARS,
        description=f"The SUT, as `{COMMANDS}` prints it there, or part of it: its hardware profile",
    )
    load_model: Literal["closed", "open"] = "closed"
    latency_basis: Literal["service_time", "response_time"] = "service_time"
    measured_at: AwareDatetime | None = Field(None, description="Now when left out")
    failure: str = Field("", max_length=2_000, description="Why it failed; a failed run needs no figures")


def read_figures(result: SentResult) -> tuple[LoadReport, dict[str, float]]:
    """The figures as those of a load report, and those that are known beside it. RequestError names what is wrong."""
    given: dict[str, float] = {}
    beside: dict[str, float] = {}
    for name, value in result.metrics.items():
        if is_known(name):
            given[name] = value
        elif name in METRICS:
            if not 0 <= value <= MAX_VALUE:
                raise RequestError(f"{name} must be a number of at least 0.", field=f"metrics.{name}")
            if (highest := METRICS[name].high) is not None and value > highest:
                raise RequestError(
                    f"{name} is {value:g}, above its upper bound of {highest:g}.", field=f"metrics.{name}"
                )
            beside[name] = value
        else:
            text = f"BenchHub knows no figure {name[:60]!r}; send it in own_metrics, with its unit and direction."
            raise RequestError(text, field=f"metrics.{name[:60]}")
    if _TOTAL in beside and not any(name.startswith("errors_") for name in given):
        given[_OTHER] = beside.pop(_TOTAL)
    own = [_own(name, figure) for name, figure in result.own_metrics.items()]
    try:
        report = report_of(given, own, load_model=result.load_model, latency_basis=result.latency_basis)
    except ParseError as error:
        if not given and not own and beside:
            text = "Beside figures of the hosts a run needs one of the load, or an own one."
        else:
            text = f"{_sentence(error.message)}."
        raise RequestError(text, field="metrics") from error
    return replace(report, tool=result.tool), beside


def _sentence(text: str) -> str:
    """With a capital, unless it begins with the name of a figure."""
    return text if "_" in text.split()[0] else text[0].upper() + text[1:]


def figures_text(result: SentResult) -> str:
    """The figures as JSON that the reader of a team's own benchmarks understands, kept as the run's artifact."""
    own = {name: figure.model_dump(exclude_none=True) for name, figure in result.own_metrics.items()}
    return json.dumps({name: value for name, value in result.metrics.items() if is_known(name)} | own)


def _own(name: str, figure: OwnFigure) -> OwnMetric:
    if not NAME.fullmatch(name) or is_known(name) or name in METRICS:
        why = "is known to BenchHub; send it in metrics" if NAME.fullmatch(name) else "is no name"
        raise RequestError(
            f"{name[:60]!r} {why}. A name has at most 60 small letters, digits, _ and .", field="own_metrics"
        )
    if abs(figure.value) > MAX_VALUE or not UNIT.fullmatch(figure.unit):
        raise RequestError(f"{name} is out of range, or its unit is no text.", field=f"own_metrics.{name}")
    try:
        check_bounds(name, figure.value, figure.unit, figure.low, figure.high)
    except ParseError as error:
        raise RequestError(f"{error.message}.", field=f"own_metrics.{name}") from error
    return OwnMetric(name, figure.value, figure.unit, figure.direction)
