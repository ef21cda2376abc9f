"""Puts a Tomcat from its release archive onto the demo's SUT."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from lab.shell import LabError

VERSION = "11.0.9"


def install_tomcat(archive: Path, home: Path) -> Path:
    """Unpack the archive into the home directory of the SUT unless it is there; returns the installation."""
    target = home / f"apache-tomcat-{VERSION}"
    if (target / "bin" / "catalina.sh").exists():
        return target
    if not archive.is_file():
        raise LabError(
            f"There is no Tomcat at {archive}. Start with bin/demo (from pip: benchhub demo), which fetches it, "
            "or name your copy with --archive."
        )
    part = home / ".tomcat.part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    subprocess.run(["tar", "-xzf", str(archive), "-C", str(part)], check=True, timeout=120)
    (part / f"apache-tomcat-{VERSION}").rename(target)
    part.rmdir()
    return target


def find_java_home(*, minimum: int = 17) -> str | None:
    """None when the `java` on the PATH is new enough, else the home of one that is. LabError when there is none."""
    if (java := shutil.which("java")) and _major(java) >= minimum:
        return None
    for candidate in sorted(Path("/usr/lib/jvm").glob("*/bin/java")):
        if _major(str(candidate)) >= minimum:
            return str(candidate.parent.parent)
    raise LabError(f"This needs Java {minimum} or later; install the package openjdk-{minimum}-jre-headless.")


def _major(java: str) -> int:
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False, timeout=60)
    match = re.search(r'version "(\d+)', answer.stderr + answer.stdout)
    return int(match[1]) if match else 0
