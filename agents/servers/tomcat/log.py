"""What Tomcat's own log says about settings that it did not take."""

from __future__ import annotations

import re

_PROPERTY = re.compile(
    r"WARNING .*? (?:Match \[(?P<element>[^\]]*)\] failed to set property \[(?P<name>[^\]]*)\] to \[(?P<value>[^\]]*)\]"
    r"|(?:\[Set\w*PropertiesRule\]|Match ?)?[\[{](?P<old>[^\]}]*)[\]}] Setting property [\['](?P<n>[^\]']*)[\]'] to "
    r"[\['](?P<v>[^\]']*)[\]'] did not find a matching property)"
)
_RECORD = re.compile(r"^\d\d-\w{3}-\d{4} [\d:.]+ (?P<level>[A-Z]+) \[[^\]]*\] (?P<source>\S+) (?P<message>.*)$")
_COMPONENT = re.compile(r"Failed to (initialize|start) component \[(?P<component>.*)\]$")
_EXCEPTION = re.compile(r"^\s*(?:Caused by: )?(?:[\w$]+\.)+(?P<name>[\w$]+)[:;] (?P<text>.*)$")
_ELEMENT = re.compile(r"No rules found matching \[(?P<element>[^\]]*)\]")
_CHANGED = re.compile(r"so has been reduced to")


def tomcat_problems(log: str) -> tuple[str, ...]:
    """Ignored settings, connectors and other components that did not start, and everything else logged as SEVERE."""
    found: list[str] = []
    lines = log.splitlines()
    for number, line in enumerate(lines):
        record = _RECORD.match(line)
        if record is None:
            continue
        if match := _PROPERTY.search(line):
            element, name, value = (match[a] if match[a] is not None else match[b] for a, b in _NAMES)
            found.append(f'Tomcat ignored {name}="{value}" of {element}: it has no such setting.')
        elif match := _ELEMENT.search(line):
            found.append(f"Tomcat ignored the element {match['element']}: it has no such element.")
        elif _CHANGED.search(line):
            found.append(f"Tomcat changed a setting: {record['message'].rstrip('.')}.")
        elif record["level"] == "SEVERE":
            found.append(_severe(record["message"], _cause(lines[number + 1 :])))
    return tuple(dict.fromkeys(found))


_NAMES = (("element", "old"), ("name", "n"), ("value", "v"))


def _severe(message: str, cause: str) -> str:
    reason = f": {cause}" if cause else ""
    if match := _COMPONENT.search(message):
        component = match["component"].replace('["', " ").replace('"]', "").replace("[", " ").rstrip("]")
        return f"{component} did not start{reason}." if reason else f"{component} did not start."
    return f"Tomcat reported: {message.rstrip('.')}{reason}."


def _cause(following: list[str]) -> str:
    """The innermost exception of the stack trace that comes next, as `text (Exception)`."""
    cause = ""
    for line in following:
        if _RECORD.match(line):
            break
        if match := _EXCEPTION.match(line):
            cause = f"{match['text'].rstrip('.')} ({match['name']})"
    return cause
