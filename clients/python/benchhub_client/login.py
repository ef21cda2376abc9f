"""Which installation, and as whom: what was given, else the environment, else what `bh login` kept."""

from __future__ import annotations

import json
import os
from pathlib import Path

from .connection import Trouble


def login_file() -> Path:
    """Where `bh login` keeps address and token; readable to its owner alone."""
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "benchhub" / "login.json"


def keep_login(url: str, token: str) -> Path:
    """Keep both for later; returns the file."""
    path = login_file()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.unlink(missing_ok=True)
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        json.dump({"url": url, "token": token}, file)
    part.replace(path)
    return path


def _place(url: str) -> str:
    """The address without the ends that name the same installation."""
    return url.rstrip("/").removesuffix("/api/v1")


def login_of(url: str | None, token: str | None) -> tuple[str, str]:
    """Address and token. Trouble when one of them is nowhere.

    The kept token goes with the kept address only: another installation does not get to see it.
    """
    url = url or os.environ.get("BENCHHUB_URL")
    token = token or os.environ.get("BENCHHUB_TOKEN")
    if not (url and token) and login_file().exists():
        try:
            kept = json.loads(login_file().read_text(encoding="utf-8"))
            if url is None or _place(url) == _place(kept["url"]):
                url, token = kept["url"], token or kept["token"]
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise Trouble(f"{login_file()} cannot be read ({error}); `bh login` writes it anew.") from error
    if not url or not token:
        raise Trouble("Set BENCHHUB_URL and BENCHHUB_TOKEN, or run `bh login`.")
    return url, token
