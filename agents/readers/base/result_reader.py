"""What a reader of result files must offer: a name, its forms, how each is told from all others, and what reads it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from agents.base.errors import ParseError
from agents.readers.base.named_result import Readout

MAX_CHARS = 16_000_000
HEAD_CHARS = 65_536


@dataclass(frozen=True)
class Source:
    """A result file: its text with plain line ends, and its name or path, "" where it has none."""

    text: str
    file_name: str = ""

    @property
    def head(self) -> str:
        """The beginning of the text, by which its form is known."""
        return self.text[:HEAD_CHARS]


@dataclass(frozen=True)
class ResultForm:
    """A form of result file. `looks_like` tells it from every other form of every tool by the head of the text."""

    name: str
    looks_like: Callable[[str], bool]
    read: Callable[[Source], Readout]


@dataclass(frozen=True)
class ResultReader:
    """A tool whose files are read. `headline`: the figures that stand for a result, the first that it has."""

    kind: str
    title: str
    forms: tuple[ResultForm, ...]
    headline: tuple[str, ...]

    def form_of(self, text: str) -> ResultForm:
        """The form of the text; the first one, whose reader says what is wrong, when it looks like none."""
        head = text[:HEAD_CHARS]
        return next((form for form in self.forms if form.looks_like(head)), self.forms[0])


def nothing_in(what: str, of: str, *, line: int | None = None) -> ParseError:
    """The error of a text that has none of `what`."""
    return ParseError(f"there is no {what} in the text", hint=f"Give the whole output of {of}.", line=line)
