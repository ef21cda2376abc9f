"""Adding a profile to a run."""

from __future__ import annotations

import argparse
import base64
import hashlib
from typing import Any

from clients.python.benchhub_client.connection import Api, Trouble

MAX_BYTES = 7_000_000
JFR = b"FLR\0"


def attach(api: Api, options: argparse.Namespace) -> str:
    """Send the file; returns the name by which the run knows it. Trouble: it cannot be read, or is too large."""
    kind, _, number = options.id.partition(":")
    if kind != "run" or not number.isdigit():
        raise Trouble(f"A profile belongs to a run, such as run:12, not to {options.id!r}.")
    try:
        with open(options.file, "rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise Trouble(f"{options.file} cannot be read: {error.strerror or error}.") from error
    if content.startswith(JFR):
        raise Trouble(
            f"{options.file} is a recording of JDK Flight Recorder, which is not read itself. Convert it: java -jar "
            f"jfr-converter.jar --threads -o otlp {options.file} FILE.otlp && gzip FILE.otlp; send FILE.otlp.gz."
        )
    if len(content) > MAX_BYTES:
        raise Trouble(f"{options.file} has more than {MAX_BYTES:,} bytes: compress it with gzip, or fold it first.")
    body: dict[str, Any] = {"profiler": options.profiler, "content": base64.b64encode(content).decode()}
    given = ("name", "role", "event", "engine", "requests")
    body.update({name: getattr(options, name) for name in given if getattr(options, name) is not None})
    if options.cpu_time is not None:
        body["cpu_time_s"] = options.cpu_time
    if options.window:
        body["start_s"], body["end_s"] = window(options.window)
    key = hashlib.sha256(repr((options.id, sorted(body.items()))).encode()).hexdigest()[:32]
    return str(api.post(f"/runs/{number}/profiles", body, key)["name"])


def window(text: str) -> tuple[float, float]:
    """Start and end of 5-65, in seconds. Trouble when they are none."""
    start, dash, end = text.partition("-")
    try:
        if not dash:
            raise ValueError(text)
        return float(start), float(end)
    except ValueError as error:
        raise Trouble(f"A window is two numbers of seconds such as 5-65, not {text!r}.") from error
