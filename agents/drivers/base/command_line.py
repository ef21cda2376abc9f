"""What a load tool's command line says about its load; some tools print it nowhere else."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from agents.base.errors import ParseError
from agents.results.report import LatencyBasis

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

    def basis(self, said: CommandLine) -> LatencyBasis:
        return "response_time" if said.offered_rate_rps and said.corrected else "service_time"


GRAMMARS = {
    "ab": Grammar(
        ("ab",),
        {"-c": "connections", "-t": "duration"},
        frozenset(("-n", "-s", "-b", "-B", "-p", "-u", "-T", "-v", "-x", "-C", "-H", "-A", "-P", "-X")),
    ),
    "autocannon": Grammar(
        ("autocannon",),
        {
            **dict.fromkeys(("-c", "--connections"), "connections"),
            **dict.fromkeys(("-d", "--duration"), "duration"),
            **dict.fromkeys(("-w", "--workers"), "threads"),
            **dict.fromkeys(("-R", "--overallRate"), "rate"),
        },
        frozenset(
            (
                "-p",
                "-a",
                "-L",
                "-S",
                "-m",
                "-t",
                "-T",
                "-b",
                "-F",
                "-i",
                "-H",
                "--headers",
                "--har",
                "-B",
                "-M",
                "-O",
                "-D",
                "-s",
                "-E",
                "--body",
                "--method",
            )
        ),
    ),
    "h2load": Grammar(
        ("h2load",),
        {
            **dict.fromkeys(("-c", "--clients"), "connections"),
            **dict.fromkeys(("-t", "--threads"), "threads"),
            **dict.fromkeys(("-D", "--duration"), "duration"),
            "--rps": "rate",
        },
        frozenset(
            (
                "-n",
                "-i",
                "-m",
                "-f",
                "-w",
                "-W",
                "-H",
                "-p",
                "-d",
                "-r",
                "-T",
                "-N",
                "-B",
                "--header",
                "--data",
                "--warm-up-time",
            )
        ),
        rate_per_connection=True,
        corrected_with=None,
    ),
    "hey": Grammar(
        ("hey",),
        {"-c": "connections", "-z": "duration"},
        frozenset(("-n", "-q", "-o", "-m", "-H", "-t", "-A", "-d", "-D", "-T", "-a", "-x", "-host", "-cpus")),
        attached=False,
    ),
    "hyperfoil": Grammar(
        ("wrk2.sh", "wrk.sh", "wrk2", "wrk", "hyperfoil"),
        {
            **dict.fromkeys(("-c", "--connections"), "connections"),
            **dict.fromkeys(("-t", "--threads"), "threads"),
            **dict.fromkeys(("-d", "--duration"), "duration"),
            **dict.fromkeys(("-R", "--rate"), "rate"),
        },
        frozenset(("-s", "-H", "--header", "--timeout", "-A")),
    ),
    "k6": Grammar(
        ("k6",), {"-d": "duration", "--duration": "duration"}, frozenset(("-e", "-u", "--vus", "-i", "--out", "-o"))
    ),
    "oha": Grammar(
        ("oha",),
        {"-c": "connections", "-z": "duration", "-q": "rate"},
        frozenset(
            (
                "-n",
                "-p",
                "-m",
                "-H",
                "-t",
                "-A",
                "-d",
                "-D",
                "-T",
                "-a",
                "-x",
                "--output-format",
                "--redirect",
                "--host",
                "-o",
            )
        ),
        corrected_with="--latency-correction",
    ),
    "siege": Grammar(
        ("siege",),
        {
            **dict.fromkeys(("-c", "--concurrent"), "connections"),
            **dict.fromkeys(("-t", "--time"), "duration"),
        },
        frozenset(
            (
                "-r",
                "-d",
                "-f",
                "-R",
                "-m",
                "-H",
                "-A",
                "-T",
                "--reps",
                "--delay",
                "--file",
                "--rc",
                "--header",
                "--user-agent",
                "--content-type",
            )
        ),
    ),
    "vegeta": Grammar(
        ("vegeta",),
        {"-rate": "rate", "--rate": "rate", "-duration": "duration", "--duration": "duration"},
        frozenset(
            (
                "-body",
                "-header",
                "-targets",
                "-timeout",
                "-connections",
                "-workers",
                "-max-workers",
                "-output",
                "-name",
                "-format",
            )
        ),
        attached=False,
    ),
}
"""By tool. wrk and wrk2 have a stricter reader in `agents.drivers.reading`."""


def words_of(command: str) -> list[str]:
    """The words of a command line. Raises ParseError when its quoting is broken."""
    if len(command) > MAX_COMMAND_CHARS:
        raise ParseError(f"the command line has more than {MAX_COMMAND_CHARS} characters")
    try:
        return shlex.split(command)
    except ValueError as error:
        raise ParseError(f"the command line cannot be split into words: {error}", hint="Check its quotes.") from error


def read_command_of(tool: str, command: str) -> CommandLine:
    """The options in a command line of `tool`; whatever stands before the tool's name is passed over.

    Raises ParseError when the quoting is broken or an option has a value that the tool would refuse.
    """
    grammar = GRAMMARS[tool]
    words = words_of(command)
    starts = [i for i, word in enumerate(words) if PurePosixPath(word).name in grammar.names]
    found: dict[str, float] = {}
    corrected = grammar.corrected_with == ""
    for option, value in _options(words[starts[0] + 1 :] if starts else words, grammar):
        if option == grammar.corrected_with:
            corrected = True
        if meaning := grammar.means.get(option):
            found[meaning] = _value(meaning, option, value)
    connections, threads = (_whole(found.get(name)) for name in ("connections", "threads"))
    rate = found.get("rate")
    if rate is not None and grammar.rate_per_connection:
        rate = rate * connections if connections else None
    return CommandLine(connections, threads, rate, found.get("duration"), corrected and rate is not None)


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
