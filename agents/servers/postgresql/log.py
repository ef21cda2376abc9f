"""What PostgreSQL's log says about settings that it did not take, and about limits that it met."""

from __future__ import annotations

import re

_RECORD = re.compile(
    r"^(?:\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} \S+ \[\d+\] )?(?P<level>LOG|WARNING|FATAL|PANIC): +(?P<message>.+)$",
    re.MULTILINE,
)
_SETTING = re.compile(
    r'unrecognized configuration parameter "|invalid value for parameter "|is outside the valid range for parameter "'
    r'|^parameter ".*" (?:cannot be changed|requires a)|^syntax error in file "'
)
_TAKEN = re.compile(r'could not bind (?:IPv[46] address|Unix address) "(.*?)": Address already in use')
_TOO_OFTEN = "checkpoints are occurring too frequently"
# Of one connection, and said in other words before: none of them is about a setting.
_USUAL = re.compile(
    r"terminating connection|the database system is |canceling |configuration file \".*\" contains errors"
    r"|could not create listen socket|could not create any TCP/IP sockets"
)


def postgresql_problems(log: str) -> tuple[str, ...]:
    """Each complaint once: a setting that is none, a port that is taken, memory or connections that do not suffice."""
    found = []
    for record in _RECORD.finditer(log):
        level, message = record["level"], record["message"].rstrip(".")
        if match := _TAKEN.search(message):
            found.append(f"PostgreSQL could not listen on {match[1]}: the port is taken.")
        elif _SETTING.search(message):
            found.append(f"PostgreSQL refuses a setting: {message}.")
        elif message.startswith(_TOO_OFTEN):
            found.append(f"PostgreSQL warned: {_TOO_OFTEN}: raise max_wal_size.")
        elif level != "LOG" and not _USUAL.search(message):
            found.append(f"PostgreSQL reported: {message}.")
    return tuple(dict.fromkeys(found))
