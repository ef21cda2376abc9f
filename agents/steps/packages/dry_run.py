"""What a package manager says that it would do, read from its own dry run."""

from __future__ import annotations

import re
from dataclasses import dataclass

_APT_LINE = re.compile(r"(Inst|Remv) (\S+)(?: \[([^\]]*)\])?(?: \((\S+) .*?(?:\[([a-z0-9]+)\])?\))?.*")
_RPM_SECTION = re.compile(r"^(Installing|Upgrading|Downgrading|Removing|Reinstalling)\b[^\n]*:$", re.MULTILINE)
_RPM_PACKAGE = re.compile(
    r"(\S+)\s+(?:x86_64|aarch64|noarch|i[3-6]86|ppc64le|s390x|riscv64)\s+(?:\d+:)?(\S+)\s+\S+\s+[\d.]+ (?:[kMG]i?)?B?"
)


@dataclass(frozen=True)
class PackagePlan:
    """What the package manager would do for what is missing: what comes new, and what else it would change."""

    new: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    problem: str | None = None


def apt_plan(lines: list[str]) -> PackagePlan:
    """`Inst NAME [OLD] (NEW SOURCE [ARCH])` and `Remv NAME [OLD]` as `apt-get -s` prints them."""
    new, changed, problem = [], [], None
    for line in lines:
        if line.startswith("E: "):
            problem = problem or line.removeprefix("E: ")
        elif match := _APT_LINE.fullmatch(line):
            action, name, old, version = match.group(1, 2, 3, 4)
            if action == "Inst" and old is None and version:
                new.append(f"{name}={version}")
            else:
                changed.append(name)
    return PackagePlan(tuple(new), tuple(changed), problem)


def dnf_plan(text: str) -> PackagePlan:
    """The table of `dnf --assumeno`: sections with a package per line, or on two lines when it is long."""
    sections = _RPM_SECTION.split(text)
    new, changed = [], []
    for title, body in zip(sections[1::2], sections[2::2], strict=True):
        body = body.partition("Transaction Summary")[0]
        for name, version in _RPM_PACKAGE.findall(body):
            if title == "Installing":
                new.append(f"{name}={version}")
            else:
                changed.append(name)
    failed = re.search(r"^(?:Error: ?|No match for argument: )(.*)$", text, re.MULTILINE)
    problem = None if new or not failed else failed[0].strip().rstrip(":")
    return PackagePlan(tuple(new), tuple(changed), problem)
