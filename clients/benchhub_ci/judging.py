"""The wait for the end, the rules of the gate, and the report."""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

from clients.benchhub_ci.words import EXIT_STATUS, duration, say
from clients.python.benchhub_client.connection import Api, Trouble
from clients.python.benchhub_client.waiting import verdicts

KINDS = ("run", "experiment", "bisection", "tuning")


def address_of(what: str) -> str:
    """The path of run:12, experiment:3, bisection:4 or tuning:5."""
    kind, colon, number = what.partition(":")
    if kind not in KINDS or not colon or not (number.isascii() and number.isdigit()):
        raise Trouble(f"An ID is run:12, experiment:3, bisection:4 or tuning:5, not {what!r}.")
    return f"/{kind}s/{number}"


def newest_try(api: Api, what: str) -> str:
    """The ID of what goes on: of a run that was tried again, that of the newest try."""
    while what.startswith("run:") and (again := api.get(address_of(what))["retried_as"]):
        what = f"run:{again}"
    return what


def rules(options: argparse.Namespace, what: str) -> list[tuple[str, str]]:
    """The gate's rules as a query. A single run has none but what too little data means, an inquiry none."""
    found = [("inconclusive", options.inconclusive)] if options.inconclusive else []
    others = [("metric", metric) for metric in options.metric or ()]
    if options.margin is not None:
        others.append(("margin_pct", str(options.margin)))
    if options.baseline:
        others.append(("baseline", options.baseline))
    if others and what.startswith("run:"):
        raise Trouble(
            "--metric, --margin and --baseline compare experiments; a single run is only checked for validity."
        )
    if found + others and what.startswith("bisection:"):
        raise Trouble("A bisection has its metric and its margin from the start; give neither these nor other rules.")
    if found + others and what.startswith("tuning:"):
        raise Trouble(
            "A tuning search has its metric and its margin from the start; give neither these nor other rules."
        )
    return found + others


def wait(api: Api, what: str, timeout_s: float, query: list[tuple[str, str]]) -> Any:
    """The verdict once it is finished. Trouble when that takes longer than `timeout_s`."""
    began = time.monotonic()
    said: list[str] = []
    # Looks first, so that the log begins with how it stands.
    for verdict in verdicts(api, address_of(what) + "/verdict", timeout_s, query, looks_first=True):
        if verdict["finished"]:
            return verdict
        for reason in verdict["reasons"]:
            if reason not in said:  # a log of hours needs no line per minute
                say(f"{duration(time.monotonic() - began)} {what}: {reason}")
        said = verdict["reasons"]
    raise Trouble(f"{what} is not finished; go on with: benchhub-ci wait {what}")


def report(verdict: dict[str, Any], options: argparse.Namespace) -> int:
    """Markdown to standard output and into the files that were asked for; the exit status."""
    print(verdict["markdown"], flush=True)
    say(f"{verdict['outcome'] if verdict['finished'] else 'under way'}: {verdict['url']}")
    for reason in verdict["reasons"]:
        say(reason)
    say(f"Comment: {'yes' if verdict['comment'] else 'no'}. {verdict['comment_reason']}")
    try:
        if options.json:
            with open(options.json, "w", encoding="utf-8") as file:
                json.dump(verdict, file, indent=2)
        if options.comment:
            # Left empty, not left out: an older file would be taken for this job's.
            with open(options.comment, "w", encoding="utf-8") as file:
                file.write(verdict["markdown"] if verdict["comment"] else "")
    except OSError as error:
        raise Trouble(f"A file cannot be written: {error}") from error
    return EXIT_STATUS[verdict["outcome"]]
