"""Fonts of this machine for characters that the report's own font lacks, such as Chinese ones and emoji."""

from __future__ import annotations

import shutil
import subprocess
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

FORMATS = {".ttf", ".otf", ".ttc", ".otc"}
MOST_FONTS, MOST_QUESTIONS = 4, 12
LOOKUP_S = 10.0


@dataclass(frozen=True)
class OtherFont:
    """A file of the machine, which of the fonts in it, and the characters that it has."""

    path: Path
    number: int
    characters: frozenset[int]


def fonts_for(characters: Iterable[int]) -> list[OtherFont]:
    """At most four fonts that have the characters, by fontconfig's choice; none where the machine has none."""
    missing = {one for one in characters if unicodedata.category(chr(one))[0] not in "CMZ"}  # nothing to draw alone
    found: list[OtherFont] = []
    for _ in range(MOST_QUESTIONS):
        if not missing or len(found) == MOST_FONTS:
            break
        one = min(missing)
        font = _font_with(one)
        if font is None:
            missing.remove(one)
        else:
            found.append(font)
            missing -= font.characters
    return found


@lru_cache(maxsize=1024)
def _font_with(character: int) -> OtherFont | None:
    """What fontconfig chooses for the character, when that really has it."""
    program = shutil.which("fc-match")
    if program is None:
        return None
    argv = [program, "-f", "%{file}\n%{index}\n%{charset}", f":charset={character:x}"]
    try:
        told = subprocess.run(argv, capture_output=True, text=True, timeout=LOOKUP_S, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    if not told:  # fontconfig knows no font at all
        return None
    file, number, ranges = told.split("\n", 2)
    font = OtherFont(Path(file), int(number) & 0xFFFF, frozenset(_characters(ranges)))  # above: the named instance
    return font if character in font.characters and font.path.suffix.lower() in FORMATS else None


def _characters(ranges: str) -> Iterable[int]:
    """Those of `20-7e a0 4e00-9fff`."""
    for part in ranges.split():
        first, _, last = part.partition("-")
        yield from range(int(first, 16), int(last or first, 16) + 1)
