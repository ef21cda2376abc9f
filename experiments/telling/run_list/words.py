"""Words of runs' labels and tags: found where one begins with what was typed, by an index, among any number of runs.

The database function `run_words` (made by the migration) takes labels and tags apart just as `parts_of` does a query:
capitals of ASCII become small, and every other character of ASCII that is no letter or digit parts two words. The index
holds the beginnings of each word, so that PostgreSQL looks up one entry and knows from its statistics how rare it is.
It needs no extension of PostgreSQL, which the embedded one does not have.
"""

from __future__ import annotations

import re

from django.contrib.postgres.fields import ArrayField
from django.db.models import BooleanField, F, Func, TextField, Value

LONGEST = 12
"""Characters of a word that count; the rest of a longer one is not looked at."""

_SEPARATORS = re.compile(r"[\x01-\x2f\x3a-\x40\x5b-\x60\x7b-\x7f]+")
_SMALL = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")


class HasWords(Func):
    """A condition: for each part of the typed word, a word of the run's labels or tags begins with it."""

    template = "(%(expressions)s)"
    arg_joiner = " @> "
    output_field = BooleanField()

    def __init__(self, parts: list[str]) -> None:
        texts = ArrayField(TextField())
        beginnings = Func(F("labels"), F("tags"), function="run_words", output_field=texts)
        super().__init__(beginnings, Value(parts, output_field=texts))


def parts_of(word: str) -> list[str]:
    """What is looked up for a typed word; nothing for one without a letter or digit."""
    return [part[:LONGEST] for part in _SEPARATORS.split(word.translate(_SMALL)) if part]
