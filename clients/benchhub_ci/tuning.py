"""What a tuning search is asked for: a file with what may be tried, what is better, and the budget."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from clients.benchhub_ci.starting import labelled, set_up, start
from clients.python.benchhub_client.connection import Api, Trouble


def tune(api: Api, options: argparse.Namespace) -> str:
    """Start the tuning search, or find what was started before; return its ID."""
    return start(api, options, "/tunings", "tuning", tuning_wanted(options))


def tuning_wanted(options: argparse.Namespace) -> dict[str, Any]:
    body = {**labelled(options), **set_up(options)}
    body["name"] = options.name or f"{options.recipe}: the best configuration"
    body["space"] = text_of(options.space)
    given = {"metric": options.metric, "budget_runs": options.runs, "budget_hours": options.hours}
    given["limits"] = [limit(text) for text in options.limit] if options.limit else None
    given |= {"reduces": options.smallest or None, "warm": False if options.cold else None}  # else as the file says
    given |= {"further_suts": options.further_sut, "confirm_sut": options.confirm_sut}
    given["confirm_after_hours"] = options.confirm_after
    body |= {name: value for name, value in given.items() if value is not None}
    if options.margin is not None:
        body["margin_ratio"] = options.margin / 100
    return body


def text_of(path: str) -> str:
    """The file, which the server reads."""
    try:
        if path == "-":
            return sys.stdin.read()
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise Trouble(f"The space cannot be read: {error}") from error


def limit(text: str) -> dict[str, Any]:
    """`latency_p99_ms<=50` or `throughput_rps>=1000`."""
    for sign, side in (("<=", "at_most"), (">=", "at_least")):
        metric, found, value = text.partition(sign)
        if found:
            try:
                return {"metric": metric.strip(), side: float(value)}
            except ValueError:
                break
    raise Trouble(f"--limit reads METRIC<=VALUE or METRIC>=VALUE, not {text!r}.")
