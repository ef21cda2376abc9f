"""Whether the static files are collected as they are now: to do it again takes a process, and seconds of its CPU."""

from __future__ import annotations

import hashlib
import importlib.metadata
from pathlib import Path

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders


def fingerprint() -> str:
    """Of the name, size and time of each static file, of what names and compresses them, and of where they go."""
    programs = [settings.VERSION, *map(importlib.metadata.version, ("django", "whitenoise"))]
    told = hashlib.sha256(repr((programs, str(settings.STATIC_ROOT))).encode())
    for finder in get_finders():
        for name, storage in sorted(finder.list([]), key=lambda found: found[0]):
            of = Path(storage.path(name)).stat()
            told.update(repr((name, of.st_size, of.st_mtime_ns)).encode())
    return told.hexdigest()


def are_collected(current: str) -> bool:
    """Whether those of this fingerprint are in their place."""
    try:
        return _note().read_text(encoding="ascii") == current and (settings.STATIC_ROOT / "staticfiles.json").exists()
    except FileNotFoundError:
        return False


def note_collected(current: str) -> None:
    """Remember that those of this fingerprint, which was taken before, are collected."""
    _note().write_text(current, encoding="ascii")


def _note() -> Path:
    return Path(settings.BENCHHUB_DATA_DIR) / "services" / "static-files"
