"""The sites as the measurement sees them: processes that are asked, cut and mended."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from bench.fleet.site import SitePlan, write


@dataclass
class SiteProcess:
    """One running site."""

    plan: SitePlan
    process: subprocess.Popen[str]

    @classmethod
    def start(cls, plan: SitePlan, folder: Path) -> SiteProcess:
        """Start it; its hosts answer some seconds later."""
        file = folder / f"{plan.name}.json"
        write(plan, file)
        command = (sys.executable, "-m", "bench.fleet.site", str(file))
        log = (folder / f"{plan.name}.log").open("w")
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True
        )
        return cls(plan, process)

    def wait_until_it_answers(self) -> None:
        """Return when its hosts and relays take connections."""
        self._answer()

    def ask(self, what: str) -> dict[str, Any]:
        """Tell it to `cut`, `mend` or only to `tell`; gives what it has seen."""
        print(json.dumps({"what": what}), file=_open(self.process.stdin), flush=True)
        return self._answer()

    def close(self) -> None:
        _open(self.process.stdin).close()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _answer(self) -> dict[str, Any]:
        line = _open(self.process.stdout).readline()
        if not line:
            raise SystemExit(f"The site {self.plan.name} has ended; see its log.")
        answer: dict[str, Any] = json.loads(line)
        return answer


def _open(pipe: IO[str] | None) -> IO[str]:
    if pipe is None:
        raise RuntimeError("a site without pipes")
    return pipe
