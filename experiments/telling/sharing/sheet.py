"""The sheet that a share link shows: text and geometry, all of it made at the moment of sharing.

Nothing is looked up when it is shown, so what is renamed, judged anew or deleted later changes nothing here.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from experiments.telling.reports.plots import CurvePlot, RowPlot

Tone = Literal["good", "bad", "warn", "neutral"]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Fact(_Part):
    label: str
    value: str


class Table(_Part):
    """Rows of text; the columns from `numbers_from` on are numbers."""

    kind: Literal["table"] = "table"
    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    numbers_from: int = 1


class Sentences(_Part):
    kind: Literal["sentences"] = "sentences"
    title: str
    sentences: tuple[str, ...]


Section = Annotated[Table | Sentences, Field(discriminator="kind")]


class Sheet(_Part):
    """What is shown of one run, comparison, experiment or trend. `sentence` is the answer, `caution` what limits it.

    `badge_label` and `badge_value` are the two halves of its badge, `tone` its colour.
    """

    title: str
    sentence: str
    caution: str = ""
    tone: Tone = "neutral"
    badge_label: str
    badge_value: str
    facts: tuple[Fact, ...] = ()
    plots: tuple[RowPlot | CurvePlot, ...] = ()
    sections: tuple[Section, ...] = ()
    frozen_at: datetime
    made_by_version: str
