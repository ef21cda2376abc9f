#!/usr/bin/env python3
"""benchhub-ci: start BenchHub runs from CI, wait for them, and pass or fail the job.

One file, Python 3.8 or newer, standard library only. Markdown goes to standard output, progress to standard error.
Exit status: 0 pass, 1 fail, 2 inconclusive, 3 error (also: no connection, bad arguments, out of time).

  benchhub-ci run --experiment "more files" --label commit=$GIT_COMMIT --state benchhub-state.json
  ID=$(benchhub-ci trigger --application tomcat --recipe limits --workload home --sut sut-1 --driver driver-1)
  benchhub-ci wait "$ID" && benchhub-ci gate "$ID"

BENCHHUB_URL and BENCHHUB_TOKEN hold the address and the token. An ID is `run:12` or `experiment:3`.
With --state a job that was interrupted finds what it started when it runs again; SIGTERM and Ctrl-C leave it running
unless --cancel-on-interrupt is given.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import signal
import ssl
import sys
import time
import uuid
from http.client import HTTPException
from typing import Any, NoReturn
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import HTTPRedirectHandler, Request, build_opener

PASS, FAIL, INCONCLUSIVE, ERROR = 0, 1, 2, 3
EXIT_STATUS = {"pass": PASS, "fail": FAIL, "inconclusive": INCONCLUSIVE, "error": ERROR}
RETRIED_STATUS = {408, 425, 429, 500, 502, 503, 504}
WAIT_S = 50  # proxies give up on an answer after 60 s
ANSWER_TIMEOUT_S = 30
RUBBISH_PATIENCE_S = 20


class Trouble(Exception):
    """Something that ends the command with exit status 3 and this message."""


class NoRedirects(HTTPRedirectHandler):
    """A redirect would carry the token to another place."""

    def redirect_request(self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> NoReturn:
        raise Trouble(f"{req.full_url} redirects to {newurl}; give that address as --url.")


class Api:
    """Talks to one installation; tries again, with growing pauses, until `patience_s` is over."""

    def __init__(self, url: str, token: str, patience_s: float) -> None:
        url = url.rstrip("/")
        self.base = url if url.endswith("/api/v1") else url + "/api/v1"
        self.token = token
        self.patience_s = patience_s
        self.opener = build_opener(NoRedirects)

    def get(self, path: str, timeout_s: float = ANSWER_TIMEOUT_S) -> Any:
        return self._call("GET", path, None, {}, timeout_s)

    def post(self, path: str, body: dict[str, Any], key: str = "") -> Any:
        """`key` makes trying again safe: what was started is not started twice."""
        return self._call("POST", path, body, {"Idempotency-Key": key} if key else {}, ANSWER_TIMEOUT_S)

    def _call(
        self, method: str, path: str, body: dict[str, Any] | None, headers: dict[str, str], timeout_s: float
    ) -> Any:
        data = None if body is None else json.dumps(body).encode()
        began = time.monotonic()
        pause_s = 0.5
        while True:
            try:
                return self._once(method, path, data, headers, timeout_s)
            except Again as again:
                wait_s = again.after_s if again.after_s is not None else pause_s * random.uniform(0.5, 1.5)  # noqa: S311 - spreads clients
                if time.monotonic() + wait_s > began + min(self.patience_s, again.patience_s):
                    raise Trouble(f"gave up after {time.monotonic() - began:.0f} s: {again}") from again
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
                after_s = error.headers.get("Retry-After", "")
                raise Again(explain(error), float(after_s) if after_s.isdigit() else None) from error
            raise Trouble(explain(error)) from error
        except (URLError, HTTPException, OSError) as error:
            reason = getattr(error, "reason", error)
            if isinstance(reason, ssl.SSLCertVerificationError):
                why = reason.verify_message
                raise Trouble(f"{self.base}: {why}; name the file of its authority in SSL_CERT_FILE.") from error
            if isinstance(reason, ssl.SSLError) and "VERSION" in (reason.reason or ""):
                raise Trouble(f"{self.base} does not speak HTTPS; does it begin with http://?") from error
            raise Again(f"no connection ({reason})") from error
        except ValueError as error:
            raise Again(f"the answer is not JSON; is {self.base} BenchHub?", None, RUBBISH_PATIENCE_S) from error


class Again(Exception):
    """Worth another try; `after_s` when the server said how long to wait, `patience_s` when less than usual will do."""

    def __init__(self, message: str, after_s: float | None = None, patience_s: float = float("inf")) -> None:
        super().__init__(message)
        self.after_s, self.patience_s = after_s, patience_s


def explain(error: HTTPError) -> str:
    """What a problem+json answer says."""
    try:
        problem = json.loads(error.read().decode())
        detail = problem["detail"]
    except (ValueError, KeyError, TypeError, OSError, HTTPException):
        return f"HTTP {error.code}, and not from BenchHub: is {error.url} right, or is a proxy between?"
    field = problem.get("field")
    return f"HTTP {error.code}: {detail}" + (f" (field: {field})" if field else "")


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def trigger(api: Api, options: argparse.Namespace) -> str:
    """Start an experiment's copy or a run, or find what the state file says was started; return its ID."""
    path, body = asked_for(options)
    state = State(options.state, path, body)
    if state.started:
        options.started = state.started
        say(f"Going on with {state.started}, which {options.state} names")
        return state.started
    key = options.idempotency_key or state.key or uuid.uuid4().hex
    say(f"Idempotency key: {key}")
    state.write(key, "")
    started = api.post(path, body, key)
    what = f"experiment:{started['id']}" if "experiment" in body else f"run:{started['number']}"
    options.started = what  # first of all: an interrupt may come at any time
    state.write(key, what)
    say(
        f"Started {what}"
        + (f", a copy of {body['experiment']}: {len(started['runs'])} runs" if "runs" in started else "")
    )
    return what


def asked_for(options: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    """The address and the body of the request that starts it."""
    body: dict[str, Any] = {"labels": pairs(options.label, "--label")}
    if options.priority:
        body["priority"] = options.priority
    if options.retries is not None:
        body["retries"] = options.retries
    if options.experiment:
        wanted = options.experiment
        body["experiment"] = int(wanted) if wanted.isdigit() else wanted
        if options.repetitions:
            body["repetitions"] = options.repetitions
        return "/experiments/copies", body
    needed = ("application", "recipe", "workload", "sut", "driver")
    if not all(getattr(options, name) for name in needed):
        raise Trouble("Give --experiment, or all of --application --recipe --workload --sut --driver.")
    body.update({name: getattr(options, name) for name in needed[:-1]}, drivers=options.driver)
    body["parameters"] = {name: typed(value) for name, value in pairs(options.param, "--param").items()}
    return "/runs", body


class State:
    """A file that outlives the job: the key before the request is sent, what was started after it.

    Another request than the one in the file is another start.
    """

    def __init__(self, path: str | None, address: str, body: dict[str, Any]) -> None:
        self.path = path
        self.request = hashlib.sha256(json.dumps([address, body], sort_keys=True).encode()).hexdigest()
        self.key = self.started = ""
        if not path or not os.path.exists(path):
            return
        try:
            with open(path, encoding="utf-8") as file:
                found = json.load(file)
            if found["request"] == self.request:
                self.key, self.started = str(found["key"]), str(found["started"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise Trouble(f"{path} is no state file of benchhub-ci ({error}); remove it to start anew.") from error

    def write(self, key: str, started: str) -> None:
        if not self.path:
            return
        part = f"{self.path}.part"
        try:
            with open(part, "w", encoding="utf-8") as file:
                json.dump({"request": self.request, "key": key, "started": started}, file)
            os.replace(part, self.path)
        except OSError as error:
            raise Trouble(f"The state cannot be written: {error}") from error


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


def address_of(what: str) -> str:
    """The path of run:12 or experiment:3."""
    kind, colon, number = what.partition(":")
    if kind not in ("run", "experiment") or not colon or not number.isdigit():
        raise Trouble(f"An ID is run:12 or experiment:3, not {what!r}.")
    return f"/{kind}s/{number}"


def rules(options: argparse.Namespace, what: str) -> list[tuple[str, str]]:
    """The gate's rules as a query. A single run has none but what too little data means."""
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
    return found + others


def wait(api: Api, what: str, timeout_s: float, query: list[tuple[str, str]]) -> Any:
    """The verdict once it is finished. Trouble when that takes longer than `timeout_s`."""
    path = address_of(what) + "/verdict"
    began = time.monotonic()
    until = began + timeout_s
    said = ""
    while True:
        wait_s = max(0, min(WAIT_S, int(until - time.monotonic())))
        verdict = api.get(f"{path}?{urlencode([*query, ('wait', str(wait_s))])}", timeout_s=wait_s + ANSWER_TIMEOUT_S)
        if verdict["finished"]:
            return verdict
        now = " ".join(verdict["reasons"])
        if now != said:  # a log of hours needs no line per minute
            said = now
            say(f"{duration(time.monotonic() - began)} {what}: {now}")
        if time.monotonic() >= until:
            raise Trouble(f"{what} is not finished; go on with: benchhub-ci wait {what}")
        time.sleep(min(1, max(0, until - time.monotonic())))


def duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


def report(verdict: dict[str, Any], options: argparse.Namespace) -> int:
    """Markdown to standard output and into the files that were asked for; the exit status."""
    print(verdict["markdown"], flush=True)
    say(f"{verdict['outcome']}: {verdict['url']}")
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
    for name in ("application", "recipe", "workload", "sut"):
        start.add_argument("--" + name, metavar="NAME")
    start.add_argument("--driver", action="append", metavar="NAME", help="a driver host; may be repeated")
    start.add_argument("--priority", choices=("low", "normal", "high"), help="high needs the role editor")
    start.add_argument("--retries", type=int, help="how often to try again when a host or BenchHub fails (0 to 3)")
    start.add_argument("--param", action="append", metavar="K=V", help="a parameter of the recipe; may be repeated")
    start.add_argument("--label", action="append", metavar="K=V", help="may be repeated")
    start.add_argument("--idempotency-key", help="the same key starts nothing twice")
    start.add_argument("--state", metavar="FILE", help="remembers what was started, for a job that runs again")
    judging = argparse.ArgumentParser(add_help=False)
    judging.add_argument("--metric", action="append", metavar="NAME", help="decides; may be repeated")
    judging.add_argument("--margin", type=float, metavar="PERCENT", help="changes within it are none")
    judging.add_argument(
        "--baseline", metavar="REF", help="branch:main, label:KEY=VALUE, tag:NAME, pinned:NAME or run:12"
    )
    judging.add_argument("--inconclusive", choices=("neutral", "pass", "fail"), help="what too little data counts as")
    judging.add_argument("--comment", metavar="FILE", help="the Markdown when it is worth a comment, else empty")
    judging.add_argument("--json", metavar="FILE", help="the whole verdict")
    ending = argparse.ArgumentParser(add_help=False)
    ending.add_argument("--timeout", type=float, default=6 * 3600, metavar="S", help="how long to wait (6 hours)")
    ending.add_argument("--cancel-on-interrupt", action="store_true", help="end what was started when the job is ended")
    commands = root.add_subparsers(dest="command", metavar="COMMAND")
    commands.required = True
    commands.add_parser("trigger", parents=[common, start], help="start, print the ID")
    for name, text, more in (
        ("wait", "wait for the end, print the ID", ending),
        ("gate", "judge: Markdown and exit status", judging),
    ):
        commands.add_parser(name, parents=[common, more], help=text).add_argument("id", metavar="ID")
    commands.add_parser("run", parents=[common, start, ending, judging], help="trigger, wait and gate in one")
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
        token = options.token.strip()  # secrets are often stored with a line end
        if not token.isascii() or not token.isprintable():
            raise Trouble("The token has characters that no token has; is it whole?")
        return perform(Api(options.url, token, options.patience), options)
    except Trouble as trouble:
        say(f"benchhub-ci: {trouble}")
        return ERROR
    except (KeyError, TypeError, ValueError) as error:  # else Python would end with 1, which means fail here
        say(f"benchhub-ci: {options.url} answered in a way that is not BenchHub's ({error!r})")
        return ERROR
    except KeyboardInterrupt:
        say("benchhub-ci: interrupted; what was started goes on")
        return ERROR


def perform(api: Api, options: argparse.Namespace) -> int:
    if options.command == "trigger":
        print(trigger(api, options), flush=True)
        return PASS
    if options.command == "gate":
        query = urlencode(rules(options, options.id))
        return report(api.get(address_of(options.id) + "/verdict" + (f"?{query}" if query else "")), options)
    judged = options.command == "run"
    if judged:
        rules(options, "experiment:" if options.experiment else "run:")  # before anything starts
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # how CI systems end a job
    options.started = None if judged else options.id
    try:
        what = trigger(api, options) if judged else options.id
        verdict = wait(api, what, options.timeout, rules(options, what) if judged else [])
    except KeyboardInterrupt:
        what = options.started
        if what is None:
            raise
        if not options.cancel_on_interrupt:
            say(f"benchhub-ci: interrupted; {what} goes on: benchhub-ci wait {what}")
        else:
            api.post(address_of(what) + "/cancel", {})
            say(f"benchhub-ci: interrupted; {what} is cancelled, and its hosts are put back")
        return ERROR
    if judged:
        return report(verdict, options)
    print(what, flush=True)
    return PASS


if __name__ == "__main__":
    sys.exit(main())
