"""What the log of Redis or Valkey says about settings that it did not take, and about a host that holds it up."""

from __future__ import annotations

import re
from collections.abc import Iterator

_RECORD = re.compile(r"^\d+:[A-Z] \d\d \w{3} \d{4} \d\d:\d\d:\d\d\.\d{3} (?P<mark>[.*#-]) (?P<message>.+)$")
_TAKEN = re.compile(r"[Cc]ould not create server TCP listening socket (\S+?): (?:bind: )?Address already in use")
_REFUSES = re.compile(r"\*\*\* FATAL CONFIG FILE ERROR")
# At # Redis also tells its own start and end, and that it takes its configuration from a file.
_USUAL = re.compile(
    r"oO0Oo|Redis version=|Valkey version=|Configuration loaded|Redis is now ready to exit|Valkey is now ready to exit"
    r"|User requested shutdown|Received SIGTERM|Failed listening on|Server initialized|Warning: no config file"
    r"|Redis is starting|Valkey is starting|You requested maxclients of|Server can't set maximum open files"
)


def redis_problems(log: str) -> tuple[str, ...]:
    """Each complaint once: a setting that is none, a port that is taken, limits and kernel settings that do not do."""
    return tuple(dict.fromkeys(_problems(log.splitlines())))


def _problems(lines: list[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        if _REFUSES.search(line):
            rest = lines[number + 1 : number + 5]
            setting = next((one[5:-1] for one in rest if one.startswith(">>> '")), "a setting")
            why = next((one for one in rest if one and not one.startswith((">>>", "Reading the"))), "").rstrip(".")
            yield f"Redis refuses {setting}: {why}." if why else f"Redis refuses {setting}."
            continue
        record = _RECORD.match(line)
        if record is None or record["mark"] != "#":
            continue
        message = record["message"]
        if match := _TAKEN.search(message):
            yield f"Redis could not listen on {match[1]}: the port is taken."
        elif " has been reduced to " in message:
            yield f"Redis changed a setting: {message.rstrip('.')}."
        elif not _USUAL.search(message):
            yield f"Redis warned: {re.sub(r'^WARNING:? ', '', message).rstrip('.')}."
