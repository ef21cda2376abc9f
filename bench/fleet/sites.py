"""The sites as the measurement sees them: processes that are asked, cut and mended."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from bench.fleet.priority import stand_back
from bench.fleet.site_plan import SitePlan, write_plan

NICENESS = {"site": 19, "relay": 0}
"""The parts. Real hosts have processors of their own: simulated ones take what the rest leaves."""


@dataclass
class SiteProcesses:
    """One running site: its hosts, and its way to the centre."""

    plan: SitePlan
    parts: list[subprocess.Popen[str]]

    @classmethod
    def start(cls, plan: SitePlan, folder: Path) -> SiteProcesses:
        """Start them; the hosts answer some seconds later."""
        file = folder / f"{plan.name}.json"
        write_plan(plan, file)
        parts = []
        for part, nice in NICENESS.items():
            command = (sys.executable, "-m", f"bench.fleet.{part}", str(file))
            log = (folder / f"{plan.name}-{part}.log").open("w")
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True
            )
            stand_back(process.pid, nice)
            parts.append(process)
        return cls(plan, parts)

    def wait_until_they_answer(self) -> None:
        """Return when hosts and relays take connections."""
        for part in self.parts:
            self._answer(part)

    def ask(self, what: str) -> dict[str, Any]:
        """Tell the site to `cut`, `mend` or only to `tell`; gives what it has seen."""
        for part in self.parts:
            print(json.dumps({"what": what}), file=_open(part.stdin), flush=True)
        return {name: seen for part in self.parts for name, seen in self._answer(part).items()}

    def close(self) -> None:
        for part in self.parts:
            _open(part.stdin).close()
        for part in self.parts:
            try:
                part.wait(timeout=20)
            except subprocess.TimeoutExpired:
                part.kill()
                part.wait()

    def _answer(self, part: subprocess.Popen[str]) -> dict[str, Any]:
        line = _open(part.stdout).readline()
        if not line:
            raise SystemExit(f"A part of the site {self.plan.name} has ended; see its log.")
        answer: dict[str, Any] = json.loads(line)
        return answer


def _open(pipe: IO[str] | None) -> IO[str]:
    if pipe is None:
        raise RuntimeError("a site without pipes")
    return pipe
