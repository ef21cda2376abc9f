"""The text files of a run, as its tools wrote them, as numbered lines."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.models import ARTIFACT_BYTES, Artifact, Run
from experiments.registry.logs.log_lines import MOST_FOUND, Found, LogLine
from experiments.registry.runs.file_store import MAX_IN_DATABASE_BYTES, TEXT_TYPES, whole

_LONGEST_LINE = 4000
"""Letters; the file itself has the rest."""
MOST_BYTES = MAX_IN_DATABASE_BYTES
"""Of a file that is taken apart here; a larger one is a download."""


@dataclass(frozen=True)
class FileEntry:
    """One file of the run that can be read as lines."""

    pk: int
    name: str
    size_bytes: int


@dataclass(frozen=True)
class LogFile:
    """A file taken apart into lines."""

    pk: int
    name: str
    texts: tuple[str, ...]

    @property
    def total(self) -> int:
        return len(self.texts)

    def page(self, first: int, most: int) -> list[LogLine]:
        """At most `most` lines from number `first` on."""
        return [self._line(number) for number in range(first, min(first + most, self.total + 1))]

    def find(self, text: str, most: int = MOST_FOUND) -> Found:
        """The first lines that hold the text, in any case of letters."""
        wanted = text.lower()
        hits: list[LogLine] = []
        for number, line in enumerate(self.texts, start=1):
            if wanted in line.lower():
                if len(hits) == most:
                    return Found(tuple(hits), True)
                hits.append(self._line(number))
        return Found(tuple(hits), False)

    def _line(self, number: int) -> LogLine:
        text = self.texts[number - 1]
        return LogLine(number, None, "", "info", text if len(text) <= _LONGEST_LINE else f"{text[:_LONGEST_LINE]}…")


def files_of(run: Run) -> list[FileEntry]:
    """The run's text files by name, but those that are too large to be read here."""
    found = run.artifacts.annotate(size_bytes=ARTIFACT_BYTES).filter(size_bytes__lte=MOST_BYTES).order_by("name")
    rows = found.values_list("pk", "name", "media_type", "size_bytes")
    return [FileEntry(pk, name, size) for pk, name, media_type, size in rows if media_type.startswith(TEXT_TYPES)]


def file_of(run: Run, pk: int) -> LogFile:
    """The file with its lines; Artifact.DoesNotExist when the run has no such text file that can be read here."""
    found = run.artifacts.get(pk=pk)
    if not found.media_type.startswith(TEXT_TYPES) or (found.stored_bytes or 0) > MOST_BYTES:
        raise Artifact.DoesNotExist
    text = whole(found).decode("utf-8", "replace").replace("\r\n", "\n").removesuffix("\n")
    return LogFile(found.pk, found.name, tuple(text.split("\n")))
