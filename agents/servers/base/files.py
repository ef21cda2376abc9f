"""An instance directory that is made with all its files in one command."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping

from agents.base.command import Command, script

_CREATE = """
set -eu
umask 077
mkdir -p -- "$(dirname -- "$1")"
mkdir -- "$1"
if [ -n "$2" ]; then tar -x -o -f - -C "$1"; fi
"""
_THEN = """
cd -- "$1"
shift 2
"""


def inside(path: str) -> str:
    """The path as it is; ValueError when it might lead out of the instance directory."""
    parts = path.split("/")
    if not path or any(part in ("", ".", "..") for part in parts) or any(c in path for c in "\0\n") or len(path) > 255:
        raise ValueError(f"'{path}' must be a path inside the instance directory")
    return path


def instance_with(
    instance: str, files: Mapping[str, str], then: str = "", *args: str, timeout_s: float = 60
) -> Command:
    """Makes the directory `instance` (it does not exist yet) with these files, path inside it -> text.

    Afterwards `then`, POSIX sh, runs in the directory with `args` as its `$1` and so on, where there is something left
    to be made. ValueError when a path might lead out of it.
    """
    archive = _archive({inside(path): text for path, text in files.items()})
    text = f"{_CREATE}{_THEN}{then}" if then else _CREATE
    return script(text, instance, "files" if files else "", *args, stdin=archive, timeout_s=timeout_s)


def _archive(files: Mapping[str, str]) -> bytes:
    """A tar archive: the one form in which any number of files fits the standard input of one command."""
    if not files:
        return b""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path, content in sorted(files.items()):
            data = content.encode()
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(data), 0o600
            archive.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()
