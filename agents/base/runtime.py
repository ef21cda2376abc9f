"""What runs the program of a server: profilers that look into it fit one of them."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Literal

Runtime = Literal["jvm", "node", "python", ""]
"""\"\": none of these, or nobody knows."""

_PROGRAMS: dict[str, Runtime] = {
    r"java": "jvm",
    r"node|nodejs": "node",
    r"python[0-9.]*|gunicorn|hypercorn|uvicorn|waitress-serve": "python",
}


def runtime_of(program: str) -> Runtime:
    """What a program, a path or its name alone, is or runs in."""
    name = PurePosixPath(program).name
    return next((runtime for pattern, runtime in _PROGRAMS.items() if re.fullmatch(pattern, name)), "")
