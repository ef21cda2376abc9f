"""What Liberty's messages.log says about settings, features and applications that it did not take."""

from __future__ import annotations

import re

from agents.formats.jvm import jvm_problems

VIRTUAL_THREADS_JAVA = 21

_RECORD = re.compile(
    r"^\[[^\]\n]*\] [0-9a-f]{8} .*? (?P<level>[A-Z]) (?P<code>[A-Z]{4,5}\d{4}[A-Z]): (?P<message>.*)$", re.MULTILINE
)
_JAVA = re.compile(r"^java\.version = (?:1\.)?(\d+)", re.MULTILINE)
_MEANING = {
    "CWWKO0221E": "Liberty could not listen on its port",
    "CWWKF0001E": "Liberty does not have a feature that is asked for",
    "CWWKF0033E": "Liberty cannot have two of the features together",
    "CWWKG0014E": "Liberty could not read its configuration",
    "CWWKG0081E": "Liberty ignored a value of the wrong type",
    "CWWKG0083W": "Liberty ignored a value of the wrong type",
    "CWWKZ0002E": "An application did not start",
    "CWWKZ0014W": "An application was not found",
}
# Configuration, features, applications and channels: the warnings of others are not about settings.
_WARNINGS = ("CWWKG", "CWWKF", "CWWKZ", "CWWKO", "CWWKE")


def liberty_problems(log: str, *, asks_virtual_threads: bool = False) -> tuple[str, ...]:
    """What the JVM refused, every error, and every warning about settings; virtual threads where Java has none."""
    found = list(jvm_problems(log))
    for record in _RECORD.finditer(log):
        code, level = record["code"], record["level"]
        if level in "EF" or (level == "W" and code.startswith(_WARNINGS)):
            message = " ".join(record["message"].split()).rstrip(".")
            found.append(f"{_MEANING.get(code, 'Liberty reported')}: {message} ({code}).")
    java = _JAVA.search(log)
    if asks_virtual_threads and java and int(java[1]) < VIRTUAL_THREADS_JAVA:
        found.append(
            f"server.xml asks for virtual threads: they need Java {VIRTUAL_THREADS_JAVA}, this is Java {java[1]}."
        )
    return tuple(dict.fromkeys(found))
