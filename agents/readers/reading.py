"""Reading a file of results: what it is, by its content, and what it says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agents.base.errors import ParseError
from agents.readers import RESULT_READERS
from agents.readers.base.named_result import Readout
from agents.readers.base.result_reader import HEAD_CHARS, ResultForm, ResultReader, Source

RESULT_FORMS: Mapping[str, tuple[ResultReader, ResultForm]] = {
    form.name: (reader, form) for reader in RESULT_READERS.values() for form in reader.forms
}
"""Every form by its name, with the reader that has it."""


@dataclass(frozen=True)
class Guess:
    """What a text looks like: a tool and the form of its file."""

    kind: str
    title: str
    form: str


def is_result_kind(kind: str) -> bool:
    """Whether `kind` is a tool with such a reader, or the name of a form."""
    return kind in RESULT_READERS or kind in RESULT_FORMS


def guesses(text: str) -> list[Guess]:
    """What the text may be, by its head: one, none, or several when it is ambiguous."""
    head = plain(text[:HEAD_CHARS])
    return [
        Guess(reader.kind, reader.title, name) for name, (reader, form) in RESULT_FORMS.items() if form.looks_like(head)
    ]


def read_results(kind: str, text: str, file_name: str = "") -> Readout:
    """What the file says, read as a tool's (its form is then detected) or as a form.

    `file_name` is its name or path; some files leave to it what they measured. Raises ParseError: unknown kind, or not
    a whole file of that kind.
    """
    source = Source(plain(text), file_name)
    if kind in RESULT_FORMS:
        return RESULT_FORMS[kind][1].read(source)
    reader = RESULT_READERS.get(kind)
    if reader is None:
        known = ", ".join(sorted(RESULT_READERS))
        raise ParseError(f"there is no reader for '{kind[:60]}'", hint=f"Known tools: {known}.")
    return reader.form_of(source.text).read(source)


def decoded(data: bytes) -> str:
    """The bytes of a file as text: UTF-8, or what its byte order mark says; wrong bytes are replaced."""
    for mark, encoding in ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")):
        if data.startswith(mark):
            return data[2:].decode(encoding, "replace")
    return data.decode("utf-8", "replace")


def plain(text: str) -> str:
    """The text without a byte order mark, with plain line ends."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n")
