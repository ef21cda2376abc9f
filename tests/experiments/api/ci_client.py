"""benchhub-ci as a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

NAMES = ("--application=tomcat", "--recipe=limits", "--workload=home page", "--sut=sut-1", "--driver=driver-1")

Ci = Callable[..., "subprocess.CompletedProcess[str]"]


def run_ci(script: Path, url: str, token: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    patience = () if "--patience" in arguments else ("--patience", "120")
    return subprocess.run(
        [sys.executable, "-I", str(script), *arguments, *patience],
        env={"PATH": os.environ["PATH"], "BENCHHUB_URL": url, "BENCHHUB_TOKEN": token},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
