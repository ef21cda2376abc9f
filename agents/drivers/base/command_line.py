"""What a load tool's command line says about its load; some tools print it nowhere else. Each tool has its grammar."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Protocol

from agents.base.errors import ParseError

MAX_COMMAND_CHARS = 100_000

_NUMBER = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,6})?", re.ASCII)
_RATE = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)(?:/([0-9]{0,9})(ms|s|m|h)?)?", re.ASCII)
_STEP = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)(ms|s|m|h|S|M|H)", re.ASCII)
_S_PER = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "S": 1, "M": 60, "H": 3600}


@dataclass(frozen=True)
class CommandLine:
    """What a command line says. `corrected` = latency counts from when a request was due."""

    connections: int | None = None
    threads: int | None = None
    offered_rate_rps: float | None = None
    duration_s: float | None = None
    corrected: bool = False


class CommandGrammar(Protocol):
    """What reads a tool's command line. Raises ParseError when the tool would refuse it."""

    def read(self, command: str) -> CommandLine: ...


@dataclass(frozen=True)
class Grammar:
    """The options of a tool: what each of the wanted ones means, and which others take a value.

    `attached` tools take `-c10` for `-c 10`, the others read that as another option.
    """

    names: tuple[str, ...]
    means: Mapping[str, str]
    valued: frozenset[str] = field(default_factory=frozenset)
    attached: bool = True
    rate_per_connection: bool = False
    corrected_with: str | None = ""
    """The switch that makes latency count from when a request was due; "" = always with a rate, None = never."""

    def read(self, command: str) -> CommandLine:
        """The options in a command line of the tool; whatever stands before the tool's name is passed over.

        Raises ParseError when the quoting is broken or an option has a value that the tool would refuse.
        """
        words = words_of(command)
        starts = [i for i, word in enumerate(words) if PurePosixPath(word).name in self.names]
        found: dict[str, float] = {}
        corrected = self.corrected_with == ""
        for option, value in _options(words[starts[0] + 1 :] if starts else words, self):
            if option == self.corrected_with:
                corrected = True
            if meaning := self.means.get(option):
                found[meaning] = _value(meaning, option, value)
        connections, threads = (_whole(found.get(name)) for name in ("connections", "threads"))
        rate = found.get("rate")
        if rate is not None and self.rate_per_connection:
            rate = rate * connections if connections else None
        return CommandLine(connections, threads, rate, found.get("duration"), corrected and rate is not None)


def words_of(command: str) -> list[str]:
    """The words of a command line. Raises ParseError when its quoting is broken."""
    if len(command) > MAX_COMMAND_CHARS:
        raise ParseError(f"the command line has more than {MAX_COMMAND_CHARS} characters")
    try:
        return shlex.split(command)
    except ValueError as error:
        raise ParseError(f"the command line cannot be split into words: {error}", hint="Check its quotes.") from error


def _options(words: list[str], grammar: Grammar) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if len(word) < 2 or not word.startswith("-"):
            continue
        option, sign, value = word.partition("=")
        takes_value = option in grammar.means or option in grammar.valued
        if not takes_value and not word.startswith("--") and grammar.attached and len(word) > 2:
            option, value = word[:2], word[2:]
            if option in grammar.means or option in grammar.valued:
                yield option, value
            continue
        if takes_value and not sign:
            value = words[at] if at < len(words) else ""
            at += 1
        yield option, value


def _value(meaning: str, option: str, text: str) -> float:
    if meaning == "duration":
        steps = _STEP.findall(text)
        if steps and "".join(map("".join, steps)) == text:
            return float(sum(float(number) * _S_PER[unit] for number, unit in steps))
    elif meaning == "rate" and (match := _RATE.fullmatch(text)):
        per_s = float(match[2] or 1) * _S_PER[match[3] or "s"]
        if per_s:
            return float(match[1]) / per_s
    if meaning != "rate" and _NUMBER.fullmatch(text):
        return float(text)
    raise ParseError(f"'{text[:60]}' is not a value for {option} in the command line")


def _whole(number: float | None) -> int | None:
    return None if number is None else int(number)
