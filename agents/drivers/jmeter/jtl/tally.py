"""Adds up a result file piece by piece in bounded memory, and makes the report of it: percentiles are exact."""

from __future__ import annotations

import re
from collections.abc import Iterable

import polars as pl

from agents.base.errors import ParseError
from agents.drivers.jmeter.jtl import part
from agents.drivers.jmeter.jtl.columns import ACTIVE, CODE, ELAPSED, LABEL, MESSAGE
from agents.drivers.jmeter.jtl.part import Part, merged

MERGE_AFTER = 64
MAX_LABELS = 5_000
MAX_FAILURES = 5_000
MAX_STEPS = 400_000
SERIAL = re.compile(r"(.+)-\d{1,6}", re.DOTALL)
"""How JMeter names the parts of a request: `LABEL-0`, `LABEL-1`."""

_GROUP_KEYS = (*part.KEYS, ELAPSED)
_FAILURE_KEYS = (LABEL, CODE, MESSAGE)


class Tally:
    """What has been counted so far. `parts` are rows that were seen to be parts of a request and were not added."""

    def __init__(self) -> None:
        self.rows = 0
        self.parts = 0
        self.labels: set[str] = set()
        self.back_ms = 0
        self.failures_cut = False
        self.course_cut = False
        self._groups: list[pl.DataFrame] = []
        self._course: list[pl.DataFrame] = []
        self._failures: list[pl.DataFrame] = []
        self._last_end_ms: int | None = None

    def add(self, piece: Part) -> None:
        """Take in the next piece of the file. ParseError when it has too many different labels."""
        self.rows += piece.rows
        self._groups.append(piece.groups)
        self._course.append(piece.course)
        if piece.failures.height:
            self._failures.append(piece.failures)
        self.see_labels(piece.groups[LABEL].unique().drop_nulls().to_list())
        back = piece.back_ms
        if self._last_end_ms is not None and piece.last_end_ms:
            back = max(back, self._last_end_ms - piece.first_end_ms)
        self.back_ms = max(self.back_ms, back)
        self._last_end_ms = piece.last_end_ms or self._last_end_ms
        if len(self._groups) >= MERGE_AFTER:
            self._merge()

    def see_labels(self, labels: Iterable[str]) -> None:
        self.labels.update(labels)
        if len(self.labels) > MAX_LABELS:
            raise ParseError(
                f"the file has more than {MAX_LABELS:,} different labels",
                hint="Name the samplers for what they do; a label that holds an id of each request cannot be counted.",
            )

    def parents(self) -> set[str]:
        """Labels P for which there is a label `P-N`: their rows may have parts."""
        found = (SERIAL.fullmatch(label) for label in self.labels)
        return {match[1] for match in found if match and match[1] in self.labels}

    def groups(self) -> pl.DataFrame:
        self._merge()
        return self._groups[0]

    def course(self) -> pl.DataFrame:
        self._merge()
        return self._course[0]

    def failures(self) -> pl.DataFrame | None:
        self._merge()
        return self._failures[0] if self._failures else None

    def _merge(self) -> None:
        self._groups = [merged(self._groups, _GROUP_KEYS)]
        self._course = [merged(self._course, (part.STEP,))]
        if self._course[0].height > MAX_STEPS:
            self.course_cut = True
            self._course = [self._course[0].head(0)]
        if self._failures:
            together = merged(self._failures, _FAILURE_KEYS).sort(part.COUNT, descending=True)
            self.failures_cut = self.failures_cut or together.height > MAX_FAILURES
            self._failures = [together.head(MAX_FAILURES)]


def has_threads(course: pl.DataFrame) -> bool:
    return ACTIVE in course.columns and course[ACTIVE].drop_nulls().len() > 0
