"""Settings that are small files of the kernel (sysfs): read many in one go, written one by one, read back elsewhere."""

from __future__ import annotations

from collections.abc import Iterable

from agents.base.command import Command, script

# Files that are not there, or that cannot be read now (a CPU that is offline), are left out.
_READ = """
cd "$1" 2>/dev/null || exit 0
shift
for pattern; do grep -Hs '' $pattern /dev/null; done
:
"""

# A value that the kernel refuses is no failure of the command: it is seen when the value is read back.
_WRITE = """
cd "$1" || exit 1
shift
for pair; do
  file=${pair%%=*}
  if [ -f "$file" ]; then printf '%s\\n' "${pair#*=}" >"$file" || echo "the kernel refused $pair" >&2; fi
done
:
"""


def read_settings(root: str, patterns: Iterable[str]) -> Command:
    """Prints `path:value` for each file under `root` that matches one of the shell patterns (constants of ours)."""
    return script(_READ, root, *patterns)


def parse_settings(output: bytes) -> dict[str, str]:
    """Path below the root -> the file's only line."""
    lines = (line.partition(":") for line in output.decode("utf-8", "replace").splitlines())
    return {path: " ".join(value.split()) for path, colon, value in lines if colon}


def write_settings(root: str, values: Iterable[tuple[str, str]]) -> tuple[Command, ...]:
    """Writes path-value pairs in order; no command when there is none."""
    pairs = [f"{path}={value}" for path, value in values]
    return (script(_WRITE, root, *pairs, privileged=True, timeout_s=120),) if pairs else ()
