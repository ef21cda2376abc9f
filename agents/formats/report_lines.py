"""Reading a report line by line, so that every error names the line."""

from __future__ import annotations

import re
from collections.abc import Callable

from agents.base.errors import ParseError

MAX_REPORT_CHARS = 8_000_000


class Lines:
    """A cursor over the lines of a bounded text."""

    def __init__(self, text: str) -> None:
        if len(text) > MAX_REPORT_CHARS:
            raise ParseError(
                f"the text has {len(text)} characters; a report of this tool has far fewer",
                hint=f"At most {MAX_REPORT_CHARS} characters are read. Is this the right file?",
            )
        self._lines = [line.rstrip() for line in text.removeprefix("\ufeff").split("\n")]
        self._next = 0

    @property
    def number(self) -> int:
        """The number, from 1, of the line that comes next."""
        return self._next + 1

    @property
    def ended(self) -> bool:
        return self._next >= len(self._lines)

    def peek(self) -> str:
        """The line that comes next, "" at the end."""
        return "" if self.ended else self._lines[self._next]

    def skip(self) -> None:
        self._next += 1

    def skip_blank(self) -> None:
        while not self.ended and not self._lines[self._next]:
            self._next += 1

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """The match of the next line, which is then consumed; None leaves it where it is."""
        match = None if self.ended else pattern.fullmatch(self._lines[self._next])
        if match:
            self._next += 1
        return match

    def expect(self, pattern: re.Pattern[str], what: str) -> re.Match[str]:
        """The match of the next line; ParseError says that `what` was expected here."""
        match = self.take(pattern)
        if match is None:
            raise self.error(f"expected {what}")
        return match

    def seek(
        self, begins: Callable[[str], object], refusal: re.Pattern[str], tool: str, *, max_lines: int
    ) -> str | None:
        """Go to the line that `begins` the report; the message of a tool that did not start where there is none."""
        message = None
        for _ in range(max_lines):
            if self.ended:
                break
            line = self.peek()
            if begins(line):
                return None
            if message is None and len(line) < 2000 and refusal.fullmatch(line):
                message = line.strip()
            self.skip()
        if message is None:
            raise self.error(f"expected a report of {tool}", hint=f"Give the whole standard output of {tool}.")
        return message

    def nothing_more(self, begins: Callable[[str], object], *, max_lines: int) -> None:
        """Go to the end. ParseError when a line `begins` a second report, or more than `max_lines` lines follow."""
        for _ in range(max_lines):
            if self.ended:
                return
            if begins(self.peek()):
                raise self.error("a second report begins", hint="Give one report per file.")
            self.skip()
        raise self.error(f"more than {max_lines} lines after the report", hint="Is this the right file?")

    def error(self, problem: str, *, hint: str = "") -> ParseError:
        """A ParseError about the line that comes next."""
        rest_is_empty = not any(self._lines[self._next : self._next + 1000])
        found = "the text ends here" if rest_is_empty else f"found '{self.peek().strip()[:80]}'"
        return ParseError(f"line {self.number}: {problem}, but {found}", hint=hint, line=self.number)
