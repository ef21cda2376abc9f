"""`bh import`: files of tools that ran elsewhere, each stored once."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .connection import Trouble
from .hub import Hub


def import_files(
    hub: Hub, paths: Sequence[Path], *, kind: str, key: str, labels: Mapping[str, str], more: Mapping[str, Any]
) -> None:
    """Store the files in their order, and print a line for each; `more` are other fields of `POST /imports`.

    A file with the same fields is stored once, so that a restarted job stores nothing twice; under another `key` again.
    Trouble names the file that is in the way, and what was stored before it.
    """
    contents = {path: path.read_bytes() for path in paths}  # all of them first: one that is not there stores nothing
    stored: list[str] = []
    for path, content in contents.items():
        # Keys are the team's, so that of another token is another one.
        known_by = (hub.api.token, key, kind, path.name, sorted(labels.items()), content, *sorted(more.items()))
        digest = hashlib.sha256(repr(known_by).encode()).hexdigest()
        try:
            numbers = hub.import_file(path, kind=kind, key=digest, labels=labels, **more)
        except Trouble as trouble:
            raise Trouble(f"{path}: {trouble}{_how(trouble)}{_so_far(stored)}", trouble.status) from trouble
        runs = [f"run #{number}" for number in numbers]
        before = ", stored before" if hub.api.replayed else ""
        if before and (gone := [f"run #{number}" for number in numbers if _is_gone(hub, number)]):
            raise Trouble(
                f"{path} was stored before, but {', '.join(gone)} was deleted since. Get it back from the trash while "
                f"it is there, or store the file again with another --key.{_so_far(stored)}"
            )
        print(f"{path}: {', '.join(runs)}{before}")
        stored.append(str(path))


def _how(trouble: Trouble) -> str:
    return " Say it with --direction NAME=lower." if "(field: directions" in str(trouble) else ""


def _so_far(stored: Sequence[str]) -> str:
    """What a failure in the midst leaves behind."""
    return f" Stored were {', '.join(stored)}; the same command goes on behind them." if stored else ""


def _is_gone(hub: Hub, number: int) -> bool:
    """Whether the run was deleted; False as well where the token may not read."""
    try:
        hub.api.get(f"/runs/{number}?fields=number")
    except Trouble as trouble:
        if trouble.status not in (403, 404):
            raise
        return trouble.status == 404
    return False
