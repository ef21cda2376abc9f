"""Runs the system's tools; what they complain about becomes the message of a LabError."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

TIMEOUT_S = 60.0


class LabError(Exception):
    """The lab cannot do that; the message says why, and what to do where something can be done."""


def run(argv: Sequence[str], *, stdin: str = "", timeout_s: float = TIMEOUT_S) -> str:
    """What the command prints. LabError with its own words when it fails, is missing or does not end in time."""
    try:
        done = subprocess.run(argv, input=stdin, capture_output=True, text=True, timeout=timeout_s, check=False)
    except FileNotFoundError as error:
        raise LabError(f"{argv[0]} is missing on this machine; install the package that has it.") from error
    except subprocess.TimeoutExpired as error:
        raise LabError(f"{' '.join(argv)} did not end within {timeout_s:g} s.") from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise LabError(f"{' '.join(argv)} failed: {said[-1] if said else f'exit status {done.returncode}'}")
    return done.stdout
