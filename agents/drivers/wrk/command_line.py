"""The command line of wrk and wrk2, read as strictly as the tools themselves do."""

from __future__ import annotations

import re
from dataclasses import dataclass
from getopt import GetoptError, gnu_getopt
from pathlib import PurePosixPath

from agents.base.errors import ParseError
from agents.drivers.base.command_line import CommandLine, words_of

_SHORT = "c:d:s:t:H:T:R:B:LUv"
_LONG = ["connections=", "duration=", "threads=", "script=", "header=", "timeout=", "rate=", "batch_latency"]
_LONG += ["latency", "u_latency", "version"]
_AMOUNT = re.compile(r"([0-9]{1,12})([kMG]?)", re.ASCII | re.IGNORECASE)
_TIME = re.compile(r"([0-9]{1,9})([smh]?)", re.ASCII | re.IGNORECASE)
_TIMES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}
_S_PER = {"": 1, "s": 1, "m": 60, "h": 3600}


@dataclass(frozen=True)
class WrkGrammar:
    """`has_rate` = -R means something; wrk passes over it."""

    has_rate: bool

    def read(self, command: str) -> CommandLine:
        """The options; whatever stands before the tool's name is passed over.

        Raises ParseError when the quoting is broken or an option has a value that the tool would refuse.
        """
        words = words_of(command)
        names = [i for i, word in enumerate(words) if PurePosixPath(word).name in ("wrk", "wrk2")]
        try:
            options, _ = gnu_getopt(words[names[0] + 1 :] if names else words, _SHORT, _LONG)
        except GetoptError as error:
            raise ParseError(f"the command line of the tool cannot be read: {error}") from error
        connections = threads = rate = duration = None
        for option, value in options:
            if option in ("-c", "--connections"):
                connections = _scaled(option, value, _AMOUNT, _TIMES)
            elif option in ("-t", "--threads"):
                threads = _scaled(option, value, _AMOUNT, _TIMES)
            elif option in ("-R", "--rate"):
                rate = float(_scaled(option, value, _AMOUNT, _TIMES))
            elif option in ("-d", "--duration"):
                duration = float(_scaled(option, value, _TIME, _S_PER))
        return CommandLine(connections, threads, rate if self.has_rate else None, duration)


def _scaled(option: str, value: str, pattern: re.Pattern[str], units: dict[str, int]) -> int:
    match = pattern.fullmatch(value)
    if not match:
        raise ParseError(f"'{value[:60]}' is not a value for {option} in the command line")
    return int(match[1]) * units[match[2].lower()]
