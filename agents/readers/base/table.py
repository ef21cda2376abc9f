"""CSV files: a head line and rows of the same length, each with its line for errors."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass

from agents.base.errors import ParseError
from agents.readers.base.numbers import count, known_number, number
from agents.readers.base.result_reader import MAX_CHARS


@dataclass(frozen=True)
class Row:
    """A row: the column's name -> its text."""

    cells: Mapping[str, str]
    line: int

    def text(self, column: str) -> str:
        """The text of a column; "" where the file has no such column."""
        return self.cells.get(column, "")

    def number(self, column: str) -> float:
        """The number of a column, in its own unit. Raises ParseError."""
        return number(self.text(column).strip(), column, self.line)

    def known(self, column: str) -> float | None:
        """Like `number`, in the same unit; None where it is empty, N/A or missing."""
        return known_number(self.text(column), column, self.line)

    def count(self, column: str) -> int:
        """The whole number of a column. Raises ParseError."""
        return count(self.text(column).strip(), column, self.line)


def read_table(
    text: str, needed: tuple[str, ...], tool: str, *, after: int = 0, shortest: int | None = None, delimiter: str = ","
) -> list[Row]:
    """The rows under the head line, which has the `needed` columns. `after`: the number of lines before the text.

    `shortest`: how many columns a row has that ends early, where the tool writes such. Raises ParseError.
    """
    if len(text) > MAX_CHARS:
        raise ParseError(
            f"the text has {len(text)} characters; at most {MAX_CHARS} of a file of {tool} are read", line=1
        )
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows: list[Row] = []
    names: list[str] | None = None
    try:
        for cells in reader:
            line = reader.line_num + after
            if not cells:
                continue
            if names is None:
                names = _head(cells, needed, tool, line)
            elif len(cells) not in (len(names), shortest) or len(cells) > len(names):
                raise ParseError(
                    f"line {line} has {len(cells)} columns, the head line has {len(names)}",
                    hint="Is the file cut off?",
                    line=line,
                )
            else:
                rows.append(Row(dict(zip(names, cells, strict=False)), line))
    except csv.Error as error:
        line = reader.line_num + after
        raise ParseError(f"line {line} is no CSV: {error}", line=line) from error
    if names is None:
        raise ParseError(f"there is no head line of {tool} in the text", hint="Give the whole file.", line=1)
    return rows


def _head(cells: list[str], needed: tuple[str, ...], tool: str, line: int) -> list[str]:
    names = [cell.strip() for cell in cells]
    lacking = [name for name in needed if name not in names]
    if lacking:
        raise ParseError(f"this is no file of {tool}: the column {lacking[0]} is missing", line=line)
    if len(set(names)) != len(names):
        raise ParseError("a column occurs twice in the head line", line=line)
    return names
