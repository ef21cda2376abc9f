"""What an importable form of load report must offer: a name, how to tell it from others, and what reads it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from agents.results.report import LoadReport

OnProgress = Callable[[int, int], None]
"""Gets the bytes read and the bytes in all; what it raises ends the reading."""


@dataclass(frozen=True)
class ReportFormat:
    """A form of report. `looks_like` tells it from the other forms of its tool, `read` raises ParseError.

    `read_file` reads a file of any size from the disk, where a form has files that are too large for one text. `split`
    gives the texts of the runs that one text holds, where tools append to a file.
    """

    name: str
    looks_like: Callable[[str], bool]
    read: Callable[[str], LoadReport]
    read_file: Callable[[Path, OnProgress], LoadReport] | None = None
    split: Callable[[str], Sequence[str]] | None = None


def only(name: str, read: Callable[[str], LoadReport]) -> tuple[ReportFormat]:
    """The forms of a tool that has one only: nothing has to be told apart."""
    return (ReportFormat(name, bool, read),)


def form_of(formats: Sequence[ReportFormat], text: str) -> ReportFormat:
    """The form that the text has; the first one, whose reader says what is wrong, when it looks like none."""
    return next((form for form in formats if form.looks_like(text)), formats[0])
