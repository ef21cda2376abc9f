"""A server that is a program of the host and no JVM, and writes its log to its standard output: nginx, Redis."""

from __future__ import annotations

from abc import ABC
from typing import Annotated, ClassVar

from pydantic import StringConstraints

from agents.base.errors import PlanError
from agents.base.process_start import ProcessStart
from agents.servers.base.server import Server

FIND_PROGRAM = """
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
need() {
  command -v "$1" >/dev/null && return
  echo "there is no program $1 on this host: install it, or correct $2 of the application" >&2
  exit 1
}
"""
"""POSIX sh: `need PROGRAM FIELD`. A plain login's PATH lacks the places where packages put servers."""

Program = Annotated[
    str, StringConstraints(pattern=r"^(?:/[A-Za-z0-9._+@%,=/-]{1,400}|[A-Za-z0-9_][A-Za-z0-9_.+-]{0,99})$")
]
"""The name of a program on the PATH, or where it is."""


class NativeServer(Server, ABC):
    """What such servers have alike."""

    is_jvm: ClassVar[bool] = False

    def environment(self, instance: str, launch: ProcessStart) -> dict[str, str]:
        """Raises PlanError when JVM options are asked for: nobody would read them."""
        if launch.jvm_options:
            raise PlanError(f"JVM options have no effect on {self.title}", hint="Take the step out.")
        return dict(launch.environment)

    def log_path(self, instance: str) -> str | None:
        return None


def own_words(name: str, value: str, what: str) -> str:
    """The value of a setting as it is; ValueError when it is more than one plain line of `what`."""
    if len(value) > 1000 or not value.isprintable():
        raise ValueError(f"the value of {name} in {what} is one line of printable characters")
    return value
