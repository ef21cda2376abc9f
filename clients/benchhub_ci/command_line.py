"""From the command line to the exit status."""

from __future__ import annotations

import argparse
import pkgutil
import signal
from typing import Any
from urllib.parse import urlencode

from clients.benchhub_ci.bisecting import bisect
from clients.benchhub_ci.judging import address_of, newest_try, report, rules, wait
from clients.benchhub_ci.options import parser
from clients.benchhub_ci.profiles import attach
from clients.benchhub_ci.starting import SETUP, trigger
from clients.benchhub_ci.tuning import tune
from clients.benchhub_ci.words import say
from clients.python.benchhub_client.connection import Api, Trouble
from clients.python.benchhub_client.ending import ERROR, PASS, status_of

VERSION_FILE = "version.txt"
"""Of the served file only; the source tree has none."""


def version() -> str:
    try:
        found = pkgutil.get_data("clients.benchhub_ci", VERSION_FILE)
    except OSError:
        found = None
    return found.decode().strip() if found else "from the source tree"


def main(arguments: list[str] | None = None) -> int:
    return status_of("benchhub-ci", lambda: parser(version()).parse_args(arguments), connected, say)


def connected(options: argparse.Namespace) -> int:
    if not options.url or not options.token:
        raise Trouble("Set BENCHHUB_URL and BENCHHUB_TOKEN, or give --url and --token.")
    return perform(Api(options.url, options.token, options.patience, f"benchhub-ci/{version()}", say), options)


def perform(api: Api, options: argparse.Namespace) -> int:
    options.started = None
    if options.command == "check":
        return check(api)
    if options.command == "cancel":
        api.post(address_of(newest_try(api, options.id)) + "/cancel", {})
        print(options.id, flush=True)
        return PASS
    if options.command == "gate":
        query = urlencode(rules(options, options.id))
        return report(api.get(address_of(options.id) + "/verdict" + (f"?{query}" if query else "")), options)
    if options.command == "profile":
        print(attach(api, options), flush=True)
        return PASS
    if options.command == "trigger":
        print(trigger(api, options), flush=True)
        return PASS
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # how CI systems end a job
    try:
        return followed(api, options)
    except KeyboardInterrupt:
        what = options.started
        if what is None:
            raise
        if not options.cancel_on_interrupt:
            say(f"benchhub-ci: interrupted; {what} goes on: benchhub-ci wait {what}")
        else:
            what = newest_try(api, what)
            api.post(address_of(what) + "/cancel", {})
            say(f"benchhub-ci: interrupted; {what} is cancelled, and its hosts are put back")
        return ERROR


def followed(api: Api, options: argparse.Namespace) -> int:
    """Start it, unless it is there already, and wait for its end."""
    query: list[tuple[str, str]] = []
    if options.command == "wait":
        options.started = what = options.id
        wait(api, what, options.timeout, query)
        print(what, flush=True)
        return PASS
    if options.command == "run":
        query = rules(options, "experiment:" if options.experiment else "run:")  # before anything starts
        what = trigger(api, options)
    else:
        if missing := [name for name in SETUP if not getattr(options, name)]:
            said = "A bisection" if options.command == "bisect" else "A tuning search"
            raise Trouble(f"{said} needs --{' --'.join(missing)} as well.")
        what = bisect(api, options) if options.command == "bisect" else tune(api, options)
        if options.no_wait:
            print(what, flush=True)
            return PASS
    return report(wait(api, what, options.timeout, query), options)


def check(api: Api) -> int:
    """Who the token is; ERROR when it could not start anything."""
    found: dict[str, Any] = api.get("/me")
    scopes = found["scopes"] or []
    print(
        f"{api.base}: {found['user']}, {found['role']} of {found['team_name']}; scopes: {', '.join(scopes)}", flush=True
    )
    if missing := [scope for scope in ("read", "launch") if scope not in scopes]:
        raise Trouble(f"The token has no scope {' and no scope '.join(missing)}; starting and judging needs both.")
    return PASS
