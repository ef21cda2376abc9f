"""How it speaks: exit statuses and lines on standard error. A `Trouble` ends the command with exit status 3."""

from __future__ import annotations

import re

from clients.python.benchhub_client.connection import Trouble
from clients.python.benchhub_client.ending import ERROR, FAIL, INCONCLUSIVE, PASS, say_line

EXIT_STATUS = {
    "pass": PASS,
    "fail": FAIL,
    "inconclusive": INCONCLUSIVE,
    "error": ERROR,
    # of a bisection
    "found": PASS,
    "not_worse": FAIL,
    "unclear": INCONCLUSIVE,
    # of a tuning search
    "better": PASS,
    "nothing_better": FAIL,
    "budget_too_small": INCONCLUSIVE,
}

_COMMIT = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{28}\b")


def say(text: str) -> None:
    """A line for people: of a whole commit the beginning, as git shows it; answers in files keep all of it."""
    say_line(_COMMIT.sub(r"\1", text))


def duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


def pairs(texts: list[str] | None, option: str) -> dict[str, str]:
    """What key=value options say."""
    found = {}
    for text in texts or ():
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise Trouble(f"{option} reads key=value, not {text!r}.")
        found[key] = value
    return found
