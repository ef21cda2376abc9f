"""What nginx's error log says about settings that it did not take, and about what it could not do."""

from __future__ import annotations

import re

# At `error` nginx tells of single requests: a page that is not there is none of its settings.
_RECORD = re.compile(
    r"^(?:nginx: |\d{4}/\d\d/\d\d \d\d:\d\d:\d\d )\[(?P<level>emerg|alert|crit|warn)\](?: \d+#\d+:(?: \*\d+)?)?"
    r" (?P<message>.+)$",
    re.MULTILINE,
)
_BIND = re.compile(r"bind\(\) to (\S+) failed \(98: ")
_OF_A_REQUEST = re.compile(r", client: .*")


def nginx_problems(log: str) -> tuple[str, ...]:
    """Each complaint once, in the order of the log: settings that it refuses, limits that do not suffice."""
    found = []
    for record in _RECORD.finditer(log):
        message = _OF_A_REQUEST.sub("", record["message"]).rstrip(".")
        if match := _BIND.search(message):
            found.append(f"nginx could not listen on {match[1]}: the port is taken.")
        elif message.startswith("still could not bind()"):
            continue
        elif record["level"] == "emerg":
            found.append(f"nginx refuses its configuration: {message}.")
        else:
            found.append(f"nginx warned: {message}.")
    return tuple(dict.fromkeys(found))
