"""Directories whose paths hold no character that means anything to a shell: start scripts evaluate them as its text."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator

_DIRECTORY = re.compile(r"(?:/(?!\.\.?(?:/|$))[A-Za-z0-9._+@%,=-]+)+")


def plain_directory(path: str) -> str:
    """The path as it is; ValueError when it is not absolute or a shell might read it as something else."""
    if not _DIRECTORY.fullmatch(path) or len(path) > 512:
        raise ValueError("this must be an absolute path of letters, digits and . _ + @ % , = -, without '..'")
    return path


Directory = Annotated[str, AfterValidator(plain_directory)]
