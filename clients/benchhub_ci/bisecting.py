"""What a bisection is asked for: two versions of a recipe, or the candidates from a good one to a bad one."""

from __future__ import annotations

import argparse
import subprocess
import sys
from typing import Any

from clients.benchhub_ci.starting import labelled, set_up, start
from clients.python.benchhub_client.connection import Api, Trouble

SHOWN_CHARS = 12


def bisect(api: Api, options: argparse.Namespace) -> str:
    """Start the bisection, or find what was started before; return its ID."""
    return start(api, options, "/bisections", "bisection", bisection_wanted(options))


def bisection_wanted(options: argparse.Namespace) -> dict[str, Any]:
    good, bad = options.good, options.bad
    body = {**labelled(options), **set_up(options)}
    body["name"] = options.name or f"{options.recipe}: {good[:SHOWN_CHARS]} to {bad[:SHOWN_CHARS]}"
    if options.metric:
        body["metric"] = options.metric
    if options.margin is not None:
        body["margin_ratio"] = options.margin / 100
    if options.max_pairs is not None:
        body["max_blocks"] = options.max_pairs
    if options.parameter:
        found = from_file(options.candidates, good, bad) if options.candidates else commits(good, bad)
        return {**body, "parameter": options.parameter, "candidates": found}
    if options.candidates:
        raise Trouble("--candidates needs --parameter: the parameter of the recipe that takes each of them.")
    return {**body, "good_version": version(good, "--good"), "bad_version": version(bad, "--bad")}


def version(text: str, option: str) -> int:
    digits = text[1:] if text.startswith("v") else text
    if not (digits.isascii() and digits.isdigit()):
        raise Trouble(
            f"{option} is a version of the recipe (3), not {text!r}; for commits, name the recipe's parameter "
            "that takes them: --parameter commit"
        )
    return int(digits)


def from_file(path: str, good: str, bad: str) -> list[str]:
    """The lines of a file from the good one to the bad one, which are added where they are not in it."""
    try:
        if path == "-":
            lines = sys.stdin.read().split("\n")
        else:
            with open(path, encoding="utf-8") as file:
                lines = file.read().split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise Trouble(f"The candidates cannot be read: {error}") from error
    found = [line.strip() for line in lines if line.strip()]
    first = found.index(good) if good in found else 0
    last = found.index(bad) if bad in found else len(found) - 1
    if good in found and bad in found and last < first:
        raise Trouble(f"{bad} comes before {good} in {path}; list the candidates in order, the good one first.")
    chosen = found[first : last + 1]
    return ([] if good in found else [good]) + chosen + ([] if bad in found else [bad])


def commits(good: str, bad: str) -> list[str]:
    """The commits of the repository here from the good one to the bad one, along the first parents."""
    whole = [
        "" if name.startswith("-") else git("rev-parse", "-q", "--verify", name + "^{commit}") for name in (good, bad)
    ]
    for name, found in zip((good, bad), whole):  # noqa: B905 - Python 3.8 has no strict
        if not found:
            raise Trouble(
                f"git knows no commit {name!r} here. A shallow clone does not have the older ones (fetch-depth: 0, "
                "GIT_DEPTH: 0); or list the candidates in a file: --candidates FILE"
            )
    between = git("rev-list", "--reverse", "--first-parent", f"{whole[0]}..{whole[1]}").split()
    if not between:
        raise Trouble(f"{bad} has no commit that {good} does not have; is the good one older than the bad one?")
    return [whole[0], *between]


def git(*words: str) -> str:
    """What git prints; empty when it finds nothing."""
    try:
        done = subprocess.run(["git", *words], stdout=subprocess.PIPE, text=True, check=False)
    except OSError as error:
        raise Trouble(f"git cannot be started ({error}); list the candidates in a file: --candidates FILE") from error
    return done.stdout.strip() if done.returncode == 0 else ""
