"""How a command ends: 0 pass or done, 1 fail, 2 inconclusive, 3 an error, which is said in one line.

`benchhub-ci` has it as well, in its one file for any Python since 3.8: standard library only.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from contextlib import suppress
from typing import Callable  # noqa: UP035 - Python 3.8

from .connection import Trouble

PASS, FAIL, INCONCLUSIVE, ERROR = 0, 1, 2, 3


def say_line(text: str) -> None:
    """A line for people, on standard error."""
    with suppress(OSError):  # a log that nobody takes is no reason to end, and no verdict
        print(text, file=sys.stderr, flush=True)


def status_of(
    program: str,
    parse: Callable[[], argparse.Namespace],
    perform: Callable[[argparse.Namespace], int],
    say: Callable[[str], None] = say_line,
) -> int:
    """The exit status of a command: `perform`'s own, else ERROR; argparse's 2 and Python's 1 mean a verdict here."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal or a job without UTF-8 has no sign for a pass
    try:
        options = parse()
    except SystemExit as stop:  # argparse ends with 2, which means inconclusive here
        return PASS if stop.code in (0, None) else ERROR
    try:
        status = perform(options)
        print(end="", flush=True)
        return status
    except Trouble as trouble:
        say(f"{program}: {trouble}")
    except KeyboardInterrupt:
        say(f"{program}: interrupted; what was started goes on")
    except OSError as error:
        say(f"{program}: {error}" if error.filename else f"{program}: its output is not taken: {error}")
        _leave_output()
    except Exception as error:  # else Python would end with 1, which means fail here
        address = getattr(options, "url", None) or "the address"
        say(f"{program}: {address} answered in a way that is not BenchHub's ({error!r})")
    return ERROR


def _leave_output() -> None:
    try:
        print(end="", flush=True)
    except OSError:  # else Python tries again at its end, with a status of its own
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
