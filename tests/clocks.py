"""Wall clocks of single processes, moved while they run.

    clocks = Clocks(folder)
    environment = {**environment, **clocks.environment("beat")}
    clocks.set("beat", -3600.0)

A small library that the tests compile answers in place of the C library's (`clock_shim.c`). A machine without a C
compiler cannot run these tests.
"""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("clock_shim.c")
COMPILER = "cc"


def compiled(source: Path, folder: Path) -> Path:
    """A library to preload, made of this source in the folder unless it is there already."""
    library = folder / f"{source.stem}.so"
    if not library.exists():
        argv = [COMPILER, "-shared", "-fPIC", "-O2", "-o", str(library), str(source), "-ldl"]
        subprocess.run(argv, check=True, capture_output=True)
        library.chmod(0o755)
    return library


class Clocks:
    """A clock for each name. `folder` must be open to the accounts of the processes that have one."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o755)
        self._folder = folder
        self._library = compiled(SOURCE, folder)

    def environment(self, name: str) -> dict[str, str]:
        """The variables of a process whose clock is the one of this name."""
        if not self._file(name).exists():
            self.set(name, 0.0)
        return {"LD_PRELOAD": str(self._library), "CLOCK_SHIM_FILE": str(self._file(name))}

    def set(self, name: str, offset_s: float) -> None:
        """From now on this clock is ahead of the machine's by so much, in the processes that run, too."""
        path = self._file(name)
        with path.open("r+b" if path.exists() else "w+b") as file:
            file.write(struct.pack("d", offset_s))
        path.chmod(0o644)

    def _file(self, name: str) -> Path:
        return self._folder / f"{name}.offset"
