"""What an nginx was built with, from `nginx -V`: its version, its modules, the flags of its compiler."""

from __future__ import annotations

import re
import shlex

from agents.base.errors import ParseError

_MODULE = re.compile(r"--(with|without)-([a-z0-9_]+_module)(?:=(dynamic))?")


def version_of(text: str) -> str:
    """The version number; ParseError when the text tells none. Forks say it in the same words."""
    if match := re.search(r"^\w+ version: \w+/(\S+)", text, re.MULTILINE | re.IGNORECASE):
        return match[1]
    raise ParseError("the program does not tell the version of an nginx")


def built_with(text: str) -> dict[str, str]:
    """`version`, `openssl`, `modules.NAME` (static, dynamic, left out, added) and `compiler_flags`, as far as told."""
    found = {"version": version_of(text)}
    if match := re.search(r"^built with (\w+SSL) (\S+)(?:.*\(running with \w+ (\S+))?", text, re.MULTILINE):
        found["tls_library"] = f"{match[1]} {match[3] or match[2]}"
    line = re.search(r"^configure arguments: (.*)$", text, re.MULTILINE)
    try:
        arguments = shlex.split(line[1]) if line else []
    except ValueError:
        arguments = []
    for argument in arguments:
        if match := _MODULE.fullmatch(argument):
            found[f"modules.{match[2]}"] = "left out" if match[1] == "without" else match[3] or "static"
        elif match := re.fullmatch(r"--add-(dynamic-)?module=(?:.*/)?([^/]+)/?", argument):
            found[f"modules.{match[2]}"] = "added, dynamic" if match[1] else "added"
        elif argument.startswith("--with-cc-opt="):
            found["compiler_flags"] = argument.partition("=")[2].strip()
    return found
