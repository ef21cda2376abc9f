"""What the HTTP load tools have in common: checked headers, methods and bodies, and the checks of a target."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from agents.base.command import Command, script
from agents.base.errors import ParseError, PlanError
from agents.base.installed import program
from agents.base.rights import Rights
from agents.drivers.base.driver import Target

BODY_NAME = "request.body"
MARGIN_S = 60.0
"""How long past its duration a tool may take before its command is given up."""

_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~][A-Za-z0-9!#$%&'*+.^_`|~-]{0,99}", re.ASCII)
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_URL = re.compile(r"https?://[^\s\x00-\x1f]{1,8000}")


def _one_line_headers(headers: dict[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name):
            raise ValueError(f"'{name[:100]}' is not the name of an HTTP header")
        if _CONTROL.search(value):
            raise ValueError(f"the value of header {name} has a line break or another control character")
    return headers


Headers = Annotated[dict[str, str], Field(max_length=100), AfterValidator(_one_line_headers)]
Method = Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
Body = Annotated[str, Field(max_length=256_000)]
Binary = Annotated[str, Field(pattern=r"^[A-Za-z0-9_./][A-Za-z0-9_./+-]{0,200}$")]
Connections = Annotated[int, Field(ge=1, le=1_000_000)]
Rate = Annotated[int, Field(ge=1, le=1_000_000_000)]
Timeout = Annotated[int, Field(ge=1, le=3600)]


SENDS = "sends requests to the server under test"


def only_program(*names: str, data: tuple[str, ...]) -> Rights:
    """The rights of a tool that nothing but its `binary` makes do anything else."""
    return Rights(does=SENDS, data=data, gates={"binary": program(*names)})


def whole_seconds(kind: str, duration_s: float) -> int:
    """The duration as the tools take it. PlanError when it is not whole seconds."""
    if duration_s < 1 or duration_s != int(duration_s):
        raise PlanError(f"{kind} runs for whole seconds, at least 1, not for {duration_s:g} s")
    return int(duration_s)


def checked_url(target: Target) -> str:
    """The address of the target. PlanError when it is not http:// or https://, so it never looks like an option."""
    if not _URL.fullmatch(target.url):
        raise PlanError(f"'{target.url[:200]}' is not an http:// or https:// address")
    return target.url


def header_options(headers: dict[str, str], option: str = "-H") -> list[str]:
    """`option` and "Name: value" for each header."""
    return [word for name, value in headers.items() for word in (option, f"{name}: {value}")]


def body_file(body: str) -> dict[str, str]:
    """The file that carries the request body, none when there is no body."""
    return {BODY_NAME: body} if body else {}


def version_script(binary: str, argument: str, install: str) -> Command:
    """Runs `binary argument`; only a missing binary fails, because several tools end with 1 after their version."""
    missing = f"{binary} is not installed on this host: {install}"
    text = 'command -v "$1" >/dev/null || { echo "$3" >&2; exit 127; }\n"$1" "$2" 2>&1 || true'
    return script(text, binary, argument, missing)


def version_in(output: bytes, pattern: re.Pattern[str], binary: str, tool: str) -> str:
    """The version (group 1 of `pattern`). ParseError when the output is that of another tool."""
    text = output.decode("utf-8", "replace")
    match = pattern.search(text[:20_000])
    if not match:
        raise ParseError(
            f"{binary} does not say that it is {tool}: {text.strip()[:200]}",
            hint=f"Set the binary of the workload to the path of {tool}.",
            line=1,
        )
    return match[1]
