"""A load tool that is one program for HTTP: how its version is asked, and where its request body is."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from agents.base.command import Command
from agents.drivers.base.driver import Driver
from agents.drivers.base.http_options import body_file, version_in, version_script


class HttpTool(Driver):
    """A program named by `binary` that sends `body`. Both are fields of each tool, so that forms keep its order."""

    version_argument: ClassVar[str] = "--version"
    version_pattern: ClassVar[re.Pattern[str]]
    """Group 1 is the version."""
    install: ClassVar[str]
    """How to get the tool, as the end of a sentence."""

    if TYPE_CHECKING:
        binary: str
        body: str

    def files(self) -> dict[str, str]:
        return body_file(self.body)

    def version_command(self) -> Command:
        return version_script(self.binary, self.version_argument, self.install)

    def parse_version(self, output: bytes) -> str:
        return version_in(output, self.version_pattern, self.binary, self.kind)
