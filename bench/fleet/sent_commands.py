"""What BenchHub sends to a host over SSH, read back: the words of the command, and the mark that it must say. Pure.

The opposite of `agents.remote.framing`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

_PIECES = re.compile(r"'([^']*)'")
_OCTAL = re.compile(rb"\\0([0-7]{3})")
_MARK = re.compile(r"printf '%s\\n' ([0-9a-f]{16})-begins")
_WORD = re.compile(r"(?:[^\s'\"]|'[^']*'|\"[^\"]*\")+")
_QUOTED = re.compile(r"'([^']*)'|\"([^\"]*)\"")


@dataclass(frozen=True)
class Sent:
    """One command. `runs_on`: a stream, which says no mark at its end."""

    argv: tuple[str, ...]
    mark: str
    runs_on: bool

    def begins(self) -> bytes:
        return f"{self.mark}-begins\n".encode()

    def ends(self, status: int) -> bytes:
        return f"\n{self.mark}-ends-{status}\n".encode()


def read_back(sent: str) -> Sent:
    """The command in a text for any shell. ValueError when it is none of BenchHub's."""
    pieces = _PIECES.findall(sent)[1:]
    data = _OCTAL.sub(lambda found: bytes((int(found[1], 8),)), "".join(pieces).encode("ascii"))
    text = data.decode("utf-8", "surrogateescape")
    found = _MARK.search(text)
    if found is None:
        raise ValueError("a command without a mark")
    mark = found[1]
    return Sent(_words(text.replace(mark, "")), mark, "\nset -- timeout " not in text)


@lru_cache(maxsize=8192)
def _words(text: str) -> tuple[str, ...]:
    """The words of the command in a text without its mark: most are sent again and again."""
    _, limited, words = text.partition(" sh -ends- ")
    if not limited:
        words = text.partition("\nexec ")[2]
    found = tuple(_QUOTED.sub(lambda part: part[1] or part[2] or "", word) for word in _WORD.findall(words))
    return found if limited else found[4:]
