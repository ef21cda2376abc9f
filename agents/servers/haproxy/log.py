"""What HAProxy says at its start about a configuration that it does not take."""

from __future__ import annotations

import re

_RECORD = re.compile(
    r"^\[(?P<level>ALERT|WARNING)\] +(?:\d+/\d+ )?\(\d+\) : (?:config : )?(?:\[\S+\.main\(\)\] )?(?P<message>.+)$",
    re.MULTILINE,
)
_TAKEN = re.compile(r"[Cc]annot bind socket \(Address already in use\).* \[(?:for )?(\S+?)\]")
# Sums of what was said line by line.
_USUAL = re.compile(r"Error\(s\) found in configuration file|Fatal errors found in configuration|Some protocols failed")


def haproxy_problems(log: str) -> tuple[str, ...]:
    """Each complaint once, in the order of the log: keywords that it refuses, ports that are taken, limits."""
    found = []
    for record in _RECORD.finditer(log):
        message = record["message"].rstrip(".")
        if match := _TAKEN.search(message):
            found.append(f"HAProxy could not listen on {match[1]}: the port is taken.")
        elif _USUAL.search(message):
            continue
        else:
            found.append(f"HAProxy {'refuses' if record['level'] == 'ALERT' else 'warned'}: {message}.")
    return tuple(dict.fromkeys(found))
