"""What a Prometheus answers, read strictly: points that are numbers, in one line for each channel."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, Field, ValidationError

from experiments.asking.prometheus.queries import PREFIX, ChannelQuery

MOST_SERIES = 5
"""Of one answer, as channels beside each other."""
MOST_ERROR_CHARS = 300
MAX_SUFFIX = 40
_OTHER_CHARS = re.compile(r"[^A-Za-z0-9_-]+")

Point = tuple[float, str]


class PrometheusError(Exception):
    """It gave no usable answer, for this reason; `final`: it will give none later, either."""

    def __init__(self, message: str, *, final: bool = False) -> None:
        super().__init__(message)
        self.final = final


class _Series(BaseModel):
    metric: dict[str, str] = {}
    values: list[Point] = []


class _Matrix(BaseModel):
    kind: Literal["matrix"] = Field(alias="resultType")
    result: list[_Series]


class _MatrixAnswer(BaseModel):
    status: Literal["success"]
    data: _Matrix


class _Instant(BaseModel):
    value: Point


class _Scalar(BaseModel):
    kind: Literal["scalar"] = Field(alias="resultType")
    result: Point


class _Vector(BaseModel):
    kind: Literal["vector"] = Field(alias="resultType")
    result: list[_Instant] = Field(min_length=1)


class _InstantAnswer(BaseModel):
    status: Literal["success"]
    data: Annotated[_Scalar | _Vector, Field(discriminator="kind")]


class _Refusal(BaseModel):
    error: str


@dataclass(frozen=True)
class Series:
    """One series: its labels, and its points that are numbers, at seconds since 1970 by the server's clock."""

    labels: Mapping[str, str]
    at_unix_s: tuple[float, ...]
    values: tuple[float, ...]


def series_in(body: str) -> list[Series]:
    """The series of a range. NaN and infinities are gaps, as the times are at which a series has no point."""
    try:
        answer = _MatrixAnswer.model_validate_json(body)
        return [_series(one) for one in answer.data.result]
    except (ValidationError, ValueError) as error:
        raise _strange(body) from error


def server_time_in(body: str) -> float:
    """When the server answered, by its own clock: seconds since 1970."""
    try:
        data = _InstantAnswer.model_validate_json(body).data
    except ValidationError as error:
        raise _strange(body) from error
    return data.result[0] if isinstance(data, _Scalar) else data.result[0].value[0]


def refusal_in(status: int, body: str) -> PrometheusError:
    """Why it answered with this status."""
    try:
        said = _Refusal.model_validate_json(body).error
    except ValidationError:
        said = body
    said = " ".join(said.split())[:MOST_ERROR_CHARS]
    if status in (401, 403):
        return PrometheusError(f"It answered {status}: the login of the source is not accepted.", final=True)
    if status in (400, 422):
        return PrometheusError(f"It refused the query ({status}): {said}", final=True)
    if status == 404:
        return PrometheusError(
            "It answered 404: no API of Prometheus is there; the source's URL ends before /api/v1.", final=True
        )
    final = 400 <= status < 500 and status not in (408, 429)
    return PrometheusError(f"It answered {status}: {said}".rstrip(": "), final=final)


def channels_in(query: ChannelQuery, found: Sequence[Series]) -> dict[str, Series]:
    """The channels by name. PrometheusError when the answer is empty, or too many series for them."""
    with_points = [one for one in found if one.values]
    if not with_points:
        what = "only NaN or infinite values" if found else "no series"
        raise PrometheusError(f"In this time it has {what} for the query.")
    if not query.label and len(found) > 1:
        raise PrometheusError(
            f"The query gives {len(found):,} series, and a channel is one: put sum(), avg() or max() around it, or "
            "name the label that tells them apart.",
            final=True,
        )
    if len(found) > MOST_SERIES:
        raise PrometheusError(
            f"The query gives {len(found):,} series, and at most {MOST_SERIES} become channels: narrow it down.",
            final=True,
        )
    if not query.label:
        return {f"{PREFIX}{query.channel}": with_points[0]}
    named = {_suffixed(query, one): one for one in with_points}
    if len(named) < len(with_points):
        raise PrometheusError(f"Several series have the same value of the label {query.label}.", final=True)
    return named


def _suffixed(query: ChannelQuery, one: Series) -> str:
    suffix = _OTHER_CHARS.sub("_", one.labels.get(query.label, ""))[:MAX_SUFFIX]
    if not suffix:
        raise PrometheusError(f"A series has no label {query.label}.", final=True)
    return f"{PREFIX}{query.channel}.{suffix}"


def _series(said: _Series) -> Series:
    points = [(at, value) for at, text in said.values if math.isfinite(value := float(text)) and math.isfinite(at)]
    return Series(said.metric, tuple(at for at, _ in points), tuple(value for _, value in points))


def _strange(body: str) -> PrometheusError:
    return PrometheusError(
        f"It did not answer as Prometheus does: {' '.join(body[:MOST_ERROR_CHARS].split())[:80]!r}.", final=True
    )
