"""Java itself: how options reach it unharmed, its version, and what it says about options that it does not take."""

from __future__ import annotations

import re
import shlex
from typing import Annotated

from pydantic import StringConstraints

from agents.base.errors import ParseError

JvmOption = Annotated[str, StringConstraints(pattern=r"^-[^\x00-\x1f\x7f]+$", max_length=4096)]

OPTIONS_VARIABLE = "JDK_JAVA_OPTIONS"
"""Read by the `java` program of Java 9 and later. No shell sees it; catalina.sh evaluates its CATALINA_OPTS."""

_VERSION = re.compile(r'^\S+ version "(?:1\.)?(\d+)([^"]*)"', re.MULTILINE)
_REJECTED = re.compile(
    r"^(?:Unrecognized VM option '(?P<unknown>[^']*)'|Unrecognized option: (?P<option>\S+)"
    r"|(?P<invalid>Invalid (?:initial|maximum) heap size: \S+)|Improperly specified VM option '(?P<improper>[^']*)'"
    r"|Error occurred during initialization of VM\n(?P<start>.+)"
    r"|Error: (?P<variable>Option \S+ is not allowed in environment variable JDK_JAVA_OPTIONS))",
    re.MULTILINE,
)
_IGNORED = re.compile(r"warning: [Ii]gnoring option (\S+?); (.*)$", re.MULTILINE)
_NOT_STARTED = "Could not create the Java Virtual Machine"


def options_value(options: tuple[str, ...]) -> str:
    """The options for OPTIONS_VARIABLE: `java` splits at spaces and reads quotes as a shell does, without escapes."""
    return shlex.join(options)


def parse_java_major(output: str) -> int:
    """17 from `openjdk version "17.0.15"`, 8 from `java version "1.8.0_402"` (man java, -version).

    Raises ParseError when it is something else.
    """
    if match := _VERSION.search(output):
        return int(match[1])
    raise ParseError("this is not the output of java -version")


def jvm_problems(log: str) -> tuple[str, ...]:
    """Options that the JVM ignored or that kept it from starting, one sentence each."""
    found = []
    for match in _REJECTED.finditer(log):
        option = match["unknown"] or match["option"] or match["improper"]
        other = match["invalid"] or match["start"] or match["variable"]
        reason = f"this Java does not take the option {option}" if option else other
        found.append(f"The JVM did not start: {reason}.")
    if not found and _NOT_STARTED in log:
        found.append("The JVM did not start: it could not be created with these options.")
    found += [f"The JVM ignored the option {option}: {why.rstrip('.')}." for option, why in _IGNORED.findall(log)]
    return tuple(dict.fromkeys(found))
