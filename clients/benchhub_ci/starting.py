"""Starting an experiment's copy, a run, a bisection or a tuning search, once."""

from __future__ import annotations

import argparse
import uuid
from typing import Any

from clients.benchhub_ci.state_file import State
from clients.benchhub_ci.words import pairs, say
from clients.python.benchhub_client.connection import Api, Trouble

SETUP = ("application", "recipe", "workload", "sut", "driver")


def trigger(api: Api, options: argparse.Namespace) -> str:
    """Start what the options ask for, or find what the state file says was started; return its ID."""
    if options.experiment:
        return start(api, options, "/experiments/copies", "experiment", copy_wanted(options))
    return start(api, options, "/runs", "run", run_wanted(options))


def start(api: Api, options: argparse.Namespace, address: str, kind: str, body: dict[str, Any]) -> str:
    """The ID of what this request started, now or when the job ran before."""
    state = State(options.state, address, body)
    if state.started:
        options.started = state.started
        say(f"Going on with {state.started}, which {options.state} names; remove the file to start anew")
        return state.started
    key = options.idempotency_key or state.key or uuid.uuid4().hex
    if not (key.isascii() and key.isprintable()):
        raise Trouble(f"--idempotency-key has printable ASCII characters only, not {key!r}.")
    say(f"Idempotency key: {key}")
    state.write(key, "")
    answer = api.post(address, body, key)
    started = f"{kind}:{answer['number' if kind == 'run' else 'id']}"
    options.started = started  # first of all: an interrupt may come at any time
    state.write(key, started)
    say(f"Started {started}" + more_about(kind, body, answer))
    return started


def more_about(kind: str, body: dict[str, Any], answer: dict[str, Any]) -> str:
    if kind == "experiment":
        return f", a copy of {body['experiment']}: {len(answer['runs'])} runs"
    if kind == "bisection":
        found = answer["candidates"]
        left = answer["steps_left"]
        whole = f": {len(found)} candidates from {found[0]} to {found[-1]}"
        return f"{whole}, at most {left} step{'s' * (left != 1)}"
    if kind == "tuning":
        return f": {len(answer['space']['parameters'])} parameters, at most {answer['budget_runs']} runs"
    return ""


def copy_wanted(options: argparse.Namespace) -> dict[str, Any]:
    wanted = options.experiment
    given = ", ".join(f"--{name}" for name in (*SETUP, "member", "param") if getattr(options, name))
    if given:
        raise Trouble(f"--experiment runs a copy of that experiment, as it is saved; leave out {given}.")
    body = {**labelled(options), "experiment": int(wanted) if wanted.isdigit() else wanted}
    if options.retries is not None:
        body["retries"] = options.retries
    if options.repetitions:
        body["repetitions"] = options.repetitions
    return body


def run_wanted(options: argparse.Namespace) -> dict[str, Any]:
    if not all(getattr(options, name) for name in SETUP):
        raise Trouble("Give --experiment, or all of --application --recipe --workload --sut --driver.")
    body = {**labelled(options), **set_up(options)}
    if options.retries is not None:
        body["retries"] = options.retries
    return body


def labelled(options: argparse.Namespace) -> dict[str, Any]:
    body: dict[str, Any] = {"labels": pairs(options.label, "--label")}
    if options.priority:
        body["priority"] = options.priority
    return body


def set_up(options: argparse.Namespace) -> dict[str, Any]:
    """Documents, hosts and parameters of a request."""
    body: dict[str, Any] = {name: getattr(options, name) for name in SETUP[:-1]}
    if options.member:
        body["members"] = pairs(options.member, "--member")
    # As it was typed: what is a number (8) and what a text that looks like one (a commit) is the recipe's to say.
    return {**body, "drivers": options.driver, "parameters": pairs(options.param, "--param")}
