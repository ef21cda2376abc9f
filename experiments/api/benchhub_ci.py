#!/usr/bin/env python3
"""benchhub-ci: start BenchHub runs from CI, wait for them, and pass or fail the job.

One file, Python 3.8 or newer, standard library only. Markdown goes to standard output, progress to standard error.
Exit status: 0 pass, 1 fail, 2 inconclusive, 3 error (also: no connection, bad arguments, out of time).

  benchhub-ci run --experiment "more files" --label commit=$GIT_COMMIT
  ID=$(benchhub-ci trigger --application tomcat --recipe limits --workload home --sut sut-1 --driver driver-1)
  benchhub-ci wait "$ID" && benchhub-ci gate "$ID"

BENCHHUB_URL and BENCHHUB_TOKEN hold the address and the token. An ID is `run:12` or `experiment:3`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
import uuid
from http.client import HTTPException
from typing import Any, NoReturn
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, Request, build_opener

PASS, FAIL, INCONCLUSIVE, ERROR = 0, 1, 2, 3
EXIT_STATUS = {"pass": PASS, "fail": FAIL, "inconclusive": INCONCLUSIVE, "error": ERROR}
RETRIED_STATUS = {408, 425, 429, 500, 502, 503, 504}
WAIT_S = 60
ANSWER_TIMEOUT_S = 30


class Trouble(Exception):
    """Something that ends the command with exit status 3 and this message."""


class NoRedirects(HTTPRedirectHandler):
    """A redirect would carry the token to another place."""

    def redirect_request(self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> NoReturn:
        raise Trouble(f"{req.full_url} redirects to {newurl}; give that address as --url.")


class Api:
    """Talks to one installation; tries again, with growing pauses, until `patience_s` is over."""

    def __init__(self, url: str, token: str, patience_s: float) -> None:
        self.base = url.rstrip("/") + "/api/v1"
        self.token = token
        self.patience_s = patience_s
        self.opener = build_opener(NoRedirects)

    def get(self, path: str, timeout_s: float = ANSWER_TIMEOUT_S) -> Any:
        return self._call("GET", path, None, {}, timeout_s)

    def post(self, path: str, body: dict[str, Any], key: str) -> Any:
        """`key` makes trying again safe: what was started is not started twice."""
        return self._call("POST", path, body, {"Idempotency-Key": key}, ANSWER_TIMEOUT_S)

    def _call(
        self, method: str, path: str, body: dict[str, Any] | None, headers: dict[str, str], timeout_s: float
    ) -> Any:
        data = None if body is None else json.dumps(body).encode()
        given_up_at = time.monotonic() + self.patience_s
        pause_s = 0.5
        while True:
            try:
                return self._once(method, path, data, headers, timeout_s)
            except Again as again:
                wait_s = again.after_s if again.after_s is not None else pause_s * random.uniform(0.5, 1.5)  # noqa: S311 - spreads clients
                if time.monotonic() + wait_s > given_up_at:
                    raise Trouble(f"{method} {self.base}{path}: {again}") from again
                say(f"{again}; trying again in {wait_s:.1f} s")
                time.sleep(wait_s)
                pause_s = min(pause_s * 2, 30)

    def _once(self, method: str, path: str, data: bytes | None, headers: dict[str, str], timeout_s: float) -> Any:
        request = Request(self.base + path, data=data, method=method)  # noqa: S310 - checked in main
        request.add_header("Authorization", "Bearer " + self.token)
        request.add_header("Accept", "application/json")
        request.add_header("User-Agent", "benchhub-ci")
        if data is not None:
            request.add_header("Content-Type", "application/json")
        for name, value in headers.items():
            request.add_header(name, value)
        try:
            with self.opener.open(request, timeout=timeout_s) as answer:
                return json.loads(answer.read().decode())
        except HTTPError as error:
            if error.code in RETRIED_STATUS:
                raise Again(f"HTTP {error.code}", retry_after(error)) from error
            raise Trouble(explain(error)) from error
        except (URLError, HTTPException, OSError) as error:
            raise Again(f"no connection ({getattr(error, 'reason', error)})") from error
        except ValueError as error:
            raise Again(f"the answer is not JSON; is {self.base} BenchHub?") from error


class Again(Exception):
    """Worth another try; `after_s` when the server said how long to wait."""

    def __init__(self, message: str, after_s: float | None = None) -> None:
        super().__init__(message)
        self.after_s = after_s


def retry_after(error: HTTPError) -> float | None:
    value = error.headers.get("Retry-After", "")
    return float(value) if value.isdigit() else None


def explain(error: HTTPError) -> str:
    """What a problem+json answer says."""
    try:
        problem = json.loads(error.read().decode())
        detail = problem["detail"]
    except (ValueError, KeyError, TypeError, OSError, HTTPException):
        return f"{error.url} answered HTTP {error.code}"
    field = problem.get("field")
    return f"HTTP {error.code}: {detail}" + (f" (field: {field})" if field else "")


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def trigger(api: Api, options: argparse.Namespace) -> str:
    """Start an experiment's copy or a run; return its ID."""
    key = options.idempotency_key or uuid.uuid4().hex
    say(f"Idempotency key: {key}")
    labels = pairs(options.label, "--label")
    urgency: dict[str, Any] = {}
    if options.priority:
        urgency["priority"] = options.priority
    if options.retries is not None:
        urgency["retries"] = options.retries
    if options.experiment:
        wanted = options.experiment
        body: dict[str, Any] = {"experiment": int(wanted) if wanted.isdigit() else wanted, "labels": labels, **urgency}
        if options.repetitions:
            body["repetitions"] = options.repetitions
        started = api.post("/experiments/copies", body, key)
        what = f"experiment:{started['id']}"
        say(f"Started {what}, a copy of {wanted}: {len(started['runs'])} runs")
        return what
    needed = ("application", "recipe", "workload", "sut", "driver")
    missing = [name for name in needed if not getattr(options, name)]
    if missing:
        raise Trouble("Give --experiment, or all of --application --recipe --workload --sut --driver.")
    body = {**{name: getattr(options, name) for name in needed}, **urgency}
    body.update(labels=labels, parameters={k: typed(v) for k, v in pairs(options.param, "--param").items()})
    what = f"run:{api.post('/runs', body, key)['number']}"
    say(f"Started {what}")
    return what


def pairs(texts: list[str] | None, option: str) -> dict[str, str]:
    found = {}
    for text in texts or ():
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise Trouble(f"{option} reads key=value, not {text!r}.")
        found[key] = value
    return found


def typed(text: str) -> Any:
    """A parameter as JSON would read it (8, 0.5, true), else as text."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, (bool, int, float)) else text


def verdict_path(what: str) -> str:
    kind, colon, number = what.partition(":")
    if kind not in ("run", "experiment") or not colon or not number.isdigit():
        raise Trouble(f"An ID is run:12 or experiment:3, not {what!r}.")
    return f"/{kind}s/{number}/verdict"


def wait(api: Api, what: str, timeout_s: float) -> Any:
    """The verdict once it is finished. Trouble when that takes longer than `timeout_s`."""
    path = verdict_path(what)
    until = time.monotonic() + timeout_s
    while True:
        wait_s = max(0, min(WAIT_S, int(until - time.monotonic())))
        verdict = api.get(f"{path}?wait={wait_s}", timeout_s=wait_s + ANSWER_TIMEOUT_S)
        if verdict["finished"]:
            return verdict
        say(f"{what}: {' '.join(verdict['reasons'])}")
        if time.monotonic() >= until:
            raise Trouble(f"{what} is not finished; go on with: benchhub-ci wait {what}")
        time.sleep(min(1, max(0, until - time.monotonic())))


def report(verdict: dict[str, Any]) -> int:
    print(verdict["markdown"], flush=True)
    return EXIT_STATUS[verdict["outcome"]]


def parser() -> argparse.ArgumentParser:
    root = argparse.ArgumentParser(
        prog="benchhub-ci", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--url", default=os.environ.get("BENCHHUB_URL"), help="the installation's address")
    common.add_argument("--token", default=os.environ.get("BENCHHUB_TOKEN"), help="better given as BENCHHUB_TOKEN")
    common.add_argument("--patience", type=float, default=300, metavar="S", help="how long to try again (300)")
    start = argparse.ArgumentParser(add_help=False)
    start.add_argument("--experiment", metavar="NAME_OR_ID", help="run a copy of this experiment")
    start.add_argument("--repetitions", type=int, help="of every variant, else as in the experiment")
    for name in ("application", "recipe", "workload", "sut", "driver"):
        start.add_argument("--" + name, metavar="NAME")
    start.add_argument("--priority", choices=("low", "normal", "high"), help="high needs the role editor")
    start.add_argument("--retries", type=int, help="how often to try again when a host or BenchHub fails (0 to 3)")
    start.add_argument("--param", action="append", metavar="K=V", help="a parameter of the recipe; may be repeated")
    start.add_argument("--label", action="append", metavar="K=V", help="may be repeated")
    start.add_argument("--idempotency-key", help="the same key starts nothing twice")
    ending = argparse.ArgumentParser(add_help=False)
    ending.add_argument("--timeout", type=float, default=6 * 3600, metavar="S", help="how long to wait (6 hours)")
    commands = root.add_subparsers(dest="command", metavar="COMMAND")
    commands.required = True
    commands.add_parser("trigger", parents=[common, start], help="start, print the ID")
    for name, text in (("wait", "wait for the end, print the ID"), ("gate", "judge: Markdown and exit status")):
        one = commands.add_parser(name, parents=[common] + ([ending] if name == "wait" else []), help=text)
        one.add_argument("id", metavar="ID")
    commands.add_parser("run", parents=[common, start, ending], help="trigger, wait and gate in one")
    return root


def main(arguments: list[str] | None = None) -> int:
    try:
        options = parser().parse_args(arguments)
    except SystemExit as stop:  # argparse ends with 2, which means inconclusive here
        return PASS if stop.code in (0, None) else ERROR
    try:
        if not options.url or not options.token:
            raise Trouble("Set BENCHHUB_URL and BENCHHUB_TOKEN, or give --url and --token.")
        if not options.url.startswith(("https://", "http://")):
            raise Trouble("The address begins with https:// or http://.")
        api = Api(options.url, options.token, options.patience)
        if options.command == "trigger":
            print(trigger(api, options), flush=True)
            return PASS
        if options.command == "gate":
            return report(api.get(verdict_path(options.id)))
        what = trigger(api, options) if options.command == "run" else options.id
        verdict = wait(api, what, options.timeout)
        if options.command == "run":
            return report(verdict)
        print(what, flush=True)
        return PASS
    except Trouble as trouble:
        say(f"benchhub-ci: {trouble}")
        return ERROR
    except KeyboardInterrupt:
        say("benchhub-ci: interrupted; what was started goes on")
        return ERROR


if __name__ == "__main__":
    sys.exit(main())
