#!/usr/bin/env python3
"""benchhub-ci: start BenchHub runs from CI, wait for them, and pass or fail the job.

One file, Python 3.8 or newer, standard library only. Markdown goes to standard output, progress to standard error.
Exit status: 0 pass, 1 fail, 2 inconclusive, 3 error (also: no connection, bad arguments, out of time).

  benchhub-ci run --experiment "more files" --label commit=$GIT_COMMIT
  ID=$(benchhub-ci trigger --application tomcat --recipe limits --workload home --sut sut-1 --driver driver-1)
  benchhub-ci wait "$ID" && benchhub-ci gate "$ID"

BENCHHUB_URL and BENCHHUB_TOKEN hold the address and the token. An ID is `run:12` or `experiment:3`.
"""

import argparse
import json
import os
import random
import sys
import time
import uuid
from http.client import HTTPException
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode
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

    def redirect_request(self, req, fp, code, msg, headers, newurl):
        raise Trouble("%s redirects to %s; give that address as --url." % (req.full_url, newurl))


class Api:
    """Talks to one installation; tries again, with growing pauses, until `patience_s` is over."""

    def __init__(self, url, token, patience_s):
        self.base = url.rstrip("/") + "/api/v1"
        self.token = token
        self.patience_s = patience_s
        self.opener = build_opener(NoRedirects)

    def get(self, path, timeout_s=ANSWER_TIMEOUT_S):
        return self._call("GET", path, None, {}, timeout_s)

    def post(self, path, body, key):
        """`key` makes trying again safe: what was started is not started twice."""
        return self._call("POST", path, body, {"Idempotency-Key": key}, ANSWER_TIMEOUT_S)

    def _call(self, method, path, body, headers, timeout_s):
        data = None if body is None else json.dumps(body).encode()
        given_up_at = time.monotonic() + self.patience_s
        pause_s = 0.5
        while True:
            try:
                return self._once(method, path, data, headers, timeout_s)
            except Again as again:
                wait_s = again.after_s if again.after_s is not None else pause_s * random.uniform(0.5, 1.5)
                if time.monotonic() + wait_s > given_up_at:
                    raise Trouble("%s %s%s: %s" % (method, self.base, path, again)) from again
                say("%s; trying again in %.1f s" % (again, wait_s))
                time.sleep(wait_s)
                pause_s = min(pause_s * 2, 30)

    def _once(self, method, path, data, headers, timeout_s):
        request = Request(self.base + path, data=data, method=method)
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
                raise Again("HTTP %d" % error.code, retry_after(error)) from error
            raise Trouble(explain(error)) from error
        except (URLError, HTTPException, OSError) as error:
            raise Again("no connection (%s)" % getattr(error, "reason", error)) from error
        except ValueError as error:
            raise Again("the answer is not JSON; is %s BenchHub?" % self.base) from error


class Again(Exception):
    """Worth another try; `after_s` when the server said how long to wait."""

    def __init__(self, message, after_s=None):
        super().__init__(message)
        self.after_s = after_s


def retry_after(error):
    value = error.headers.get("Retry-After", "")
    return float(value) if value.isdigit() else None


def explain(error):
    """What a problem+json answer says."""
    try:
        problem = json.loads(error.read().decode())
        detail = problem["detail"]
    except (ValueError, KeyError, TypeError, OSError, HTTPException):
        return "%s answered HTTP %d" % (error.url, error.code)
    field = problem.get("field")
    return "HTTP %d: %s%s" % (error.code, detail, " (field: %s)" % field if field else "")


def say(text):
    print(text, file=sys.stderr, flush=True)


def trigger(api, options):
    """Start an experiment's copy or a run; return its ID."""
    key = options.idempotency_key or uuid.uuid4().hex
    say("Idempotency key: %s" % key)
    labels = pairs(options.label, "--label")
    if options.experiment:
        body = {"copy": True, "labels": labels}
        if options.repetitions:
            body["repetitions"] = options.repetitions
        number = find_experiment(api, options.experiment)
        started = api.post("/experiments/%d/launch" % number, body, key)
        what, name = "experiment:%d" % started["id"], started["name"]
        say("Started %s (%s), a copy of experiment %d: %d runs" % (what, name, number, len(started["runs"])))
        return what
    needed = ("application", "recipe", "workload", "sut", "driver")
    missing = [name for name in needed if not getattr(options, name)]
    if missing:
        raise Trouble("Give --experiment, or all of --application --recipe --workload --sut --driver.")
    body = {name: getattr(options, name) for name in needed}
    body.update(labels=labels, parameters={k: typed(v) for k, v in pairs(options.param, "--param").items()})
    what = "run:%d" % api.post("/runs", body, key)["number"]
    say("Started %s" % what)
    return what


def find_experiment(api, reference):
    """The number of an experiment: given as such, or the newest one of this name."""
    if reference.isdigit():
        return int(reference)
    found = api.get("/experiments?" + urlencode({"name": reference, "limit": 1}))["items"]
    if not found:
        raise Trouble("There is no experiment named %r." % reference)
    return int(found[0]["id"])


def pairs(texts, option):
    found = {}
    for text in texts or ():
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise Trouble("%s reads key=value, not %r." % (option, text))
        found[key] = value
    return found


def typed(text):
    """A parameter as JSON would read it (8, 0.5, true), else as text."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, (bool, int, float)) else text


def verdict_path(what):
    kind, colon, number = what.partition(":")
    if kind not in ("run", "experiment") or not colon or not number.isdigit():
        raise Trouble("An ID is run:12 or experiment:3, not %r." % what)
    return "/%ss/%s/verdict" % (kind, quote(number))


def wait(api, what, timeout_s):
    """The verdict once it is finished. Trouble when that takes longer than `timeout_s`."""
    path = verdict_path(what)
    until = time.monotonic() + timeout_s
    while True:
        wait_s = max(0, min(WAIT_S, int(until - time.monotonic())))
        verdict = api.get("%s?wait=%d" % (path, wait_s), timeout_s=wait_s + ANSWER_TIMEOUT_S)
        if verdict["finished"]:
            return verdict
        say("%s: %s" % (what, " ".join(verdict["reasons"])))
        if time.monotonic() >= until:
            raise Trouble("%s is not finished; go on with: benchhub-ci wait %s" % (what, what))
        time.sleep(min(1, max(0, until - time.monotonic())))


def report(verdict):
    print(verdict["markdown"], flush=True)
    return EXIT_STATUS[verdict["outcome"]]


def parser():
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


def main(arguments=None):
    try:
        options = parser().parse_args(arguments)
    except SystemExit as stop:  # argparse ends with 2, which means inconclusive here
        return PASS if stop.code in (0, None) else ERROR
    try:
        if not options.url or not options.token:
            raise Trouble("Set BENCHHUB_URL and BENCHHUB_TOKEN, or give --url and --token.")
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
        say("benchhub-ci: %s" % trouble)
        return ERROR
    except KeyboardInterrupt:
        say("benchhub-ci: interrupted; what was started goes on")
        return ERROR


if __name__ == "__main__":
    sys.exit(main())
