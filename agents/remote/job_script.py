"""The script of a job, `cmd`: limits, affinity, directory and environment, then the command itself. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from agents.base.cpuset import format_cpus, parse_cpus
from agents.base.errors import PlanError

LIMITS = frozenset(
    (
        "as",
        "core",
        "cpu",
        "data",
        "fsize",
        "locks",
        "memlock",
        "msgqueue",
        "nice",
        "nofile",
        "nproc",
        "rss",
        "rtprio",
        "rttime",
        "sigpending",
        "stack",
    )
)
"""Limits that can be set: the names of prlimit(1)."""

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

UNFIT_STATUS = 78
"""What `cmd` exits with when the host cannot give what the specification asks for."""

_SET_LIMIT = """
set_limit() {
  command -v prlimit >/dev/null || { echo "prlimit (package util-linux) is missing, which sets limits" >&2; exit 71; }
  prlimit --pid $$ "--$1=$2:$2" 2>/dev/null && return
  hard=$(prlimit --pid $$ "--$1" -o HARD --noheadings | tr -d ' ')
  echo "cannot set the limit $1 to $2: the hard limit of this login is $hard" >&2
  exit 78
}
"""

_SET_AFFINITY = """
set_affinity() {
  command -v taskset >/dev/null || { echo "taskset (package util-linux) is missing, which chooses CPUs" >&2; exit 71; }
  taskset -cp "$1" $$ >/dev/null || { echo "cannot run on the CPUs $1" >&2; exit 78; }
  have=
  while read -r key value; do [ "$key" != Cpus_allowed_list: ] || have=$value; done </proc/$$/status
  [ "$have" = "$1" ] || { echo "asked for the CPUs $1, but the host gives only $have" >&2; exit 78; }
}
"""


def job_script(
    argv: tuple[str, ...], *, environment: Mapping[str, str], cwd: str | None, limits: Mapping[str, int], cpus: str
) -> str:
    """The text of `cmd`: sets up its own process, then becomes the command. With the argument `check` it stops before.

    It exits UNFIT_STATUS when a limit or the affinity cannot be had exactly as asked, and 71 when the directory or what
    sets them is not there. PlanError names what can never be right on any host.
    """
    lines = ["#!/bin/sh"]
    if limits:
        lines.append(_SET_LIMIT.strip())
        lines += [f"set_limit {_limit_name(name)} {_limit_value(name, limits[name])}" for name in sorted(limits)]
    if cpus:
        lines += [_SET_AFFINITY.strip(), f"set_affinity {format_cpus(parse_cpus(cpus))}"]
    lines.append(f"cd {shlex.quote(cwd)} || exit 71" if cwd else "cd || exit 71")
    lines.append('[ "${1-}" != check ] || exit 0')
    lines.append("umask 022  # what it writes itself is as after a login")
    lines += [f"export {_variable(name)}={shlex.quote(environment[name])}" for name in sorted(environment)]
    lines.append(f"exec {shlex.join(argv)}")
    text = "\n".join(lines) + "\n"
    if "\0" in text:
        raise PlanError("A command, its directory and its environment cannot contain a NUL character.")
    return text


def _limit_name(name: str) -> str:
    if name not in LIMITS:
        raise PlanError(f"There is no limit '{name}'.", hint=f"Known limits: {', '.join(sorted(LIMITS))}.")
    return name


def _limit_value(name: str, value: int) -> int:
    if value < 0:
        raise PlanError(f"The limit {name} cannot be {value}.", hint="Use a number from 0 up.")
    return value


def _variable(name: str) -> str:
    if not _VARIABLE.fullmatch(name):
        raise PlanError(f"'{name}' is not a name of an environment variable.")
    return name
