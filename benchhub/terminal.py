"""What `manage.py up` writes to the terminal: one line per event, the name of the process in a colour of its own."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

COLOURS = (36, 32, 33, 35, 34)  # cyan, green, yellow, magenta, blue
RED = 31
NAME_WIDTH = 14


class Terminal:
    """`followed` are log files whose new lines are shown as well."""

    def __init__(self, output: TextIO | None = None, followed: Sequence[Path] = ()) -> None:
        self.output = output or sys.stdout
        self.coloured = self.output.isatty() and not os.environ.get("NO_COLOR")
        self.colours: dict[str, int] = {}
        self.offsets_bytes = {path: path.stat().st_size if path.exists() else 0 for path in followed}

    def say(self, name: str, text: str) -> None:
        self._write(name, text, None)

    def warn(self, name: str, text: str) -> None:
        self._write(name, text, RED)

    def follow(self) -> None:
        """Shows what has been added to the followed files since the last call."""
        for path, offset in self.offsets_bytes.items():
            if not path.exists():
                continue
            with path.open("rb") as file:
                file.seek(offset if offset <= path.stat().st_size else 0)
                added = file.read()
                end = added.rfind(b"\n") + 1
                self.offsets_bytes[path] = file.tell() - len(added) + end
            for line in added[:end].decode("utf-8", "replace").splitlines():
                self.say(path.stem, line)

    def _write(self, name: str, text: str, colour: int | None) -> None:
        label = f"{name:<{NAME_WIDTH}}"
        if self.coloured:
            own = self.colours.setdefault(name, COLOURS[len(self.colours) % len(COLOURS)])
            label = f"\x1b[{own}m{label}\x1b[0m"
            text = f"\x1b[{colour}m{text}\x1b[0m" if colour else text
        try:
            print(label, text, file=self.output, flush=True)
        except OSError:  # the terminal has gone; stopping in order matters more
            pass
